package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
)

func TestGuardLimitsAllOrNothing(t *testing.T) {
	g := gomega.NewWithT(t)
	root := t.TempDir()
	for _, name := range []string{"cgroup.controllers", "cgroup.subtree_control"} {
		g.Expect(os.WriteFile(filepath.Join(root, name), []byte("memory pids\n"), 0o600)).To(gomega.Succeed())
	}
	h, err := Detect(root)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for name, l := range map[string]Limits{
		"nothing": {}, "no memory": {PIDs: 9}, "no pids": {MemoryBytes: 1 << 20}, "swap": {MemoryBytes: 1 << 20, PIDs: 9, SwapBytes: -1},
	} {
		_, err := h.Guard("/guard", l)
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("a guard limits all three")), name)
	}
	// A tree of plain folders takes no limit, and is left as it was.
	_, err = h.Guard("/guard", Limits{MemoryBytes: 1 << 20, PIDs: 9})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("memory.max")))
	g.Expect(filepath.Join(root, "guard")).NotTo(gomega.BeADirectory())
}
