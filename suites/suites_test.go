package suites

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// The flags of `ginkgo ./suites -- -config FILE` and of `go test ./suites`.
var (
	configFile = flag.String("config", "", "runner configuration; the default one when empty")
	runscPath  = flag.String("runsc", "", "runsc to test, instead of the configuration's")
)

func TestMain(m *testing.M) {
	act.Main()
	os.Exit(m.Run())
}

var collected = map[string]reports.Trial{}

var _ = func() bool {
	Specs(func(id string) (reports.Trial, bool) {
		t, ok := collected[id]
		return t, ok
	})
	return true
}()

// TestConformance is the suite itself: one run on this host's kernel and a real
// runsc. It needs root and fails without.
func TestConformance(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "tenwalls")
}

var _ = ginkgo.BeforeSuite(func(sc ginkgo.SpecContext) {
	cfg, err := testConfig()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	suite, _ := ginkgo.GinkgoConfiguration()
	filter := types.MustParseLabelFilter(suite.LabelFilter)
	rep, err := Run(sc, Options{
		Config: cfg, Version: "test", Select: func(t *Trial) bool { return filter(t.Labels()) },
		Progress: func(p Progress) {
			if p.Trial != nil {
				fmt.Fprintln(ginkgo.GinkgoWriter, reports.Line(p.Trial))
			}
		},
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for _, t := range rep.Trials {
		collected[t.ID] = t
	}
})

func testConfig() (runsc.Config, error) {
	cfg := runsc.DefaultConfig()
	if *configFile != "" {
		var err error
		if cfg, err = runsc.LoadConfig(*configFile); err != nil {
			return cfg, err
		}
	} else {
		built, err := filepath.Abs("../bin/runsc")
		if err != nil {
			return cfg, err
		}
		cfg.Runtime.Path = built
		if cfg.StateDir, err = os.MkdirTemp("", "tenwalls-suite-"); err != nil {
			return cfg, err
		}
		ginkgo.DeferCleanup(func(context.Context) error { return os.RemoveAll(cfg.StateDir) })
	}
	if *runscPath != "" {
		cfg.Runtime.Path = *runscPath
	}
	return cfg, nil
}
