package calendar

import "time"

// Format renders a time for a model: RFC 3339 to the second, with the offset of the zone (nil is UTC). "unknown" when it is
// zero.
func Format(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return "unknown"
	}
	if zone == nil {
		zone = time.UTC
	}
	return t.In(zone).Format(time.RFC3339)
}
