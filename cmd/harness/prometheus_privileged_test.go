//go:build privileged

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// freePort is an address on loopback at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close() // it is for somebody else
	return l.Addr().String()
}

// prometheus is a real one (Debian's package prometheus) that scrapes one target
// each second and evaluates the alert rules that are shipped.
type prometheus struct {
	t       *testing.T
	address string
	log     string
}

func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tw-prometheus-")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "alerts.yml"), rules, 0o644))
	config := fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: tenwalls
    static_configs: [{targets: ["%s"]}]
`, target)
	check(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o644))
	p := &prometheus{t: t, address: freePort(t), log: filepath.Join(dir, "log")}
	log, err := os.Create(p.log)
	check(t, err)
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("Debian's package prometheus is needed: %v", err)
	}
	check(t, log.Close())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
	})
	return p
}

// ask reads one answer of the HTTP API.
func (p *prometheus) ask(path string, into any) error {
	resp, err := http.Get("http://" + p.address + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // read to the end, or of no use
	return json.NewDecoder(resp.Body).Decode(into)
}

// up says whether the target was scraped.
func (p *prometheus) up() bool {
	var got struct {
		Data struct{ ActiveTargets []struct{ Health string } }
	}
	err := p.ask("/api/v1/targets?state=active", &got)
	return err == nil && len(got.Data.ActiveTargets) == 1 && got.Data.ActiveTargets[0].Health == "up"
}

// firing says whether an alert of that name fires.
func (p *prometheus) firing(name string) bool {
	var got struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if err := p.ask("/api/v1/alerts", &got); err != nil {
		return false
	}
	for _, a := range got.Data.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == name {
			return true
		}
	}
	return false
}

// until waits for what Prometheus comes to.
func (p *prometheus) until(what string, within time.Duration, done func() bool) time.Time {
	p.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		if done() {
			return time.Now()
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(p.log) // for the reader of the failure only
			p.t.Fatalf("%s: not within %s; Prometheus:\n%s", what, within, log)
		}
	}
}
