package cgroup

import (
	"testing"

	"github.com/onsi/gomega"
)

func TestPathIn(t *testing.T) {
	const text = "12:cpu,cpuacct:/a\n11:memory:/user:odd/b c\n1:name=systemd:/init\n0::/unified\n"
	for name, c := range map[string]struct {
		controllers []string
		want        string
	}{
		"alone":          {[]string{"memory"}, "/user:odd/b c"},
		"beside another": {[]string{"cpuacct"}, "/a"},
		"either":         {[]string{"pids", "cpu"}, "/a"},
	} {
		g := gomega.NewWithT(t)
		got, err := pathIn([]byte(text), c.controllers)
		g.Expect(err).NotTo(gomega.HaveOccurred(), name)
		g.Expect(got).To(gomega.Equal(c.want), name)
	}
	g := gomega.NewWithT(t)
	_, err := pathIn([]byte(text+"garbage\n"), []string{"pids"})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("no line for pids")))
}
