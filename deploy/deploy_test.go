// Package deploy holds what is installed beside the harness: alert rules with
// their unit tests, and a dashboard. It has no code but tests.
//
// What these tests do not prove: that somebody is woken, or looks.
package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"

	"tenwalls.dev/harness/reports/metrics"
)

const (
	rulesFile     = "prometheus/alerts.yml"
	rulesTestFile = "prometheus/alerts_test.yml"
	dashboardFile = "grafana/tenwalls.json"
)

// rules is the part of a rule file that is looked at here.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// dashboard is the part of Grafana's model that is looked at here.
type dashboard struct {
	UID    string `json:"uid"`
	Title  string `json:"title"`
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string } `json:"targets"`
	} `json:"panels"`
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func theRules(t *testing.T) (r rules) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, rulesFile), &r); err != nil || len(r.Groups) == 0 {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	return r
}

func theDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(read(t, dashboardFile), &d); err != nil || len(d.Panels) == 0 {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	return d
}

var (
	ourMetric  = regexp.MustCompile(`tenwalls_[a-z_]+`)
	nameOfDesc = regexp.MustCompile(`fqName: "([^"]+)"`)
)

// there is every metric that the harness can tell.
func there() []string {
	out := make(chan *prometheus.Desc)
	go func() {
		m := metrics.New("test")
		metrics.NewDaemon(m).Describe(out)
		m.Describe(out)
		close(out)
	}()
	var names []string
	for d := range out {
		names = append(names, nameOfDesc.FindStringSubmatch(d.String())[1])
	}
	return names
}

// A rule or panel over a metric that is not there is silent for ever.
func TestEveryMetricNamedIsThere(t *testing.T) {
	all := there()
	for _, file := range []string{rulesFile, rulesTestFile, dashboardFile, "../docs/operations.md"} {
		named := ourMetric.FindAllString(string(read(t, file)), -1)
		if len(named) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range named {
			if !slices.Contains(all, name) {
				t.Errorf("%s names %s, which there is not", file, name)
			}
		}
		if file != dashboardFile && file != "../docs/operations.md" {
			continue
		}
		for _, name := range all {
			if !slices.Contains(named, name) {
				t.Errorf("%s does not show %s", file, name)
			}
		}
	}
}

// An alert without a test in which it fires may never fire.
func TestEveryAlertIsSeenToFire(t *testing.T) {
	var tests struct {
		Tests []struct {
			Rules []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	if err := yaml.Unmarshal(read(t, rulesTestFile), &tests); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, r := range test.Rules {
			if len(r.Fires) > 0 {
				fires[r.Alert] = true
			} else {
				quiet[r.Alert] = true
			}
		}
	}
	for _, g := range theRules(t).Groups {
		for _, r := range g.Rules {
			if !fires[r.Alert] || !quiet[r.Alert] {
				t.Errorf("%s: fires in a test %t, keeps quiet in one %t", r.Alert, fires[r.Alert], quiet[r.Alert])
			}
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s lacks a severity, summary or description", r.Alert)
			}
		}
	}
}

func TestDashboard(t *testing.T) {
	d := theDashboard(t)
	if d.UID == "" || d.Title == "" {
		t.Errorf("no uid or title: %q, %q", d.UID, d.Title)
	}
	const width = 24 // columns of Grafana's grid
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if p.Title == "" || p.Type == "" || ids[p.ID] || len(p.Targets) == 0 {
			t.Errorf("panel %d %q: no title, type or query, or the id of another", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > width {
			t.Errorf("panel %q stands beside the grid: %+v", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" && other != p.Title {
					t.Fatalf("panel %q covers %q", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
	}
}
