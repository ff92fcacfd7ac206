package store

import (
	"strconv"
	"strings"
	"time"

	"memgpt"
)

// DayFormat is how Spending writes days.
const DayFormat = time.DateOnly

// Spending is what an agent's calls of one model used on one day. Those of a commit are added to what the store has; so
// they never conflict, whoever else writes. They outlive their agent: the money is spent.
type Spending struct {
	Tenant, Agent, Model string
	Day                  string // in the agent's zone, as DayFormat; "" in the sum of all days
	UTC                  string // the same instant's day in UTC; "" in the sum of all days
	memgpt.Usage                // no field is negative
}

// SpendingRange selects spending of one tenant: of one agent, or of all where Agent is "", on the days from From to To.
type SpendingRange struct {
	Tenant, Agent string
	From, To      string // days in the agents' zones; "" is open
	UTC           bool   // they are days in UTC
	Total         bool   // the sums of all days instead, a row by agent and model, without days
}

// FormatMoney renders nano-dollars: to the cent from a dollar on, else to three digits, cut off.
func FormatMoney(nano int64) string {
	digits := strconv.FormatInt(max(nano, 0), 10)
	if len(digits) > 9 { // a dollar or more
		whole, cents := digits[:len(digits)-9], digits[len(digits)-9:len(digits)-7]
		return "$" + whole + "." + cents
	}
	fraction := strings.Repeat("0", 9-len(digits)) + digits
	first := strings.IndexFunc(fraction, func(c rune) bool { return c != '0' })
	if first < 0 {
		return "$0.00"
	}
	fraction = strings.TrimRight(fraction[:min(max(first+3, 2), 9)], "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return "$0." + fraction
}
