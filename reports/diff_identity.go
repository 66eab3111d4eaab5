package reports

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// identity compares what was tried, with what, and where.
func (c *comparison) identity() {
	a, b := c.a, c.b
	for _, f := range []struct{ what, before, after string }{
		{"runtime digest", a.Runtime.Digest, b.Runtime.Digest},
		{"runtime version", a.Runtime.Version, b.Runtime.Version},
		{"runtime path", a.Runtime.Path, b.Runtime.Path},
		{"runtime platform", a.Runtime.Platform, b.Runtime.Platform},
		{"runtime flags", strings.Join(a.Runtime.Flags, " "), strings.Join(b.Runtime.Flags, " ")},
		{"kernel", a.Host.Kernel, b.Host.Kernel},
		{"boot", a.Host.BootID, b.Host.BootID},
		{"host", a.Host.Name, b.Host.Name},
		{"architecture", a.Host.Arch, b.Host.Arch},
		{"cgroup version", strconv.Itoa(a.Host.CgroupVersion), strconv.Itoa(b.Host.CgroupVersion)},
		{"configuration digest", a.ConfigDigest, b.ConfigDigest},
		{"profile", a.Profile, b.Profile},
	} {
		c.change(Identity, f.what, f.what, f.before, f.after, "")
	}
	for _, k := range keys(a.Limits, b.Limits) {
		c.change(Identity, "limit "+k, "limit "+k, number(a.Limits, k), number(b.Limits, k), "")
	}
	for _, f := range []struct{ what, before, after string }{
		{"base image digest", a.Image.Base, b.Image.Base},
		{"harness digest", a.Harness.Digest, b.Harness.Digest},
		{"harness version", a.Harness.Version, b.Harness.Version},
	} {
		c.change(Identity, f.what, f.what, f.before, f.after, "")
	}
}

// keys are those of either map, in order.
func keys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func number(m map[string]int64, key string) string {
	n, ok := m[key]
	if !ok {
		return "none"
	}
	return strconv.FormatInt(n, 10)
}
