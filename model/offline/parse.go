package offline

import (
	"fmt"
	"strconv"
	"strings"

	"memgpt"
)

// Parse reads the name of a stand-in, "offline", with its slips where it has any: "offline:forget_search=.3,seed=2". The
// slips are forget_search, bad_query, forget_save and stop_paging, see [Config]. It reports whether the name is one of a
// stand-in at all; errors say what of it can't be read.
func Parse(name string) (Config, bool, error) {
	var c Config
	kind, slips, more := strings.Cut(name, ":")
	if kind != Name {
		return c, false, nil
	}
	if !more {
		return c, true, nil
	}
	for _, pair := range strings.Split(slips, ",") {
		key, value, _ := strings.Cut(pair, "=")
		if err := c.set(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return Config{}, true, memgpt.Errorf(memgpt.CodeInvalid, "model %q: %w; write it as offline:forget_search=.3,seed=2", name, err)
		}
	}
	return c, true, nil
}

// set sets what a name says.
func (c *Config) set(key, value string) error {
	if key == "seed" {
		seed, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return fmt.Errorf("seed %q is no whole number", value)
		}
		c.Seed = seed
		return nil
	}
	shares := map[string]*float64{"forget_search": &c.ForgetSearch, "bad_query": &c.BadQuery, "forget_save": &c.ForgetSave,
		"stop_paging": &c.StopPaging}
	share, ok := shares[key]
	if !ok {
		return fmt.Errorf("there is no slip %q; there are forget_search, bad_query, forget_save and stop_paging", key)
	}
	p, err := strconv.ParseFloat(value, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return fmt.Errorf("%s is %q and no share within 0 and 1", key, value)
	}
	*share = p
	return nil
}

// String is the name that Parse reads, "offline" where there are no slips.
func (c Config) String() string {
	var slips []string
	for _, s := range []struct {
		key   string
		share float64
	}{{"forget_search", c.ForgetSearch}, {"bad_query", c.BadQuery}, {"forget_save", c.ForgetSave}, {"stop_paging", c.StopPaging}} {
		if s.share > 0 {
			slips = append(slips, s.key+"="+strconv.FormatFloat(s.share, 'g', -1, 64))
		}
	}
	if c.Seed != 0 {
		slips = append(slips, "seed="+strconv.FormatUint(c.Seed, 10))
	}
	if len(slips) == 0 {
		return Name
	}
	return Name + ":" + strings.Join(slips, ",")
}
