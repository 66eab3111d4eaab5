package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	published = desc("published",
		"1 while a qualification is published, 0 while it is withdrawn.")
	publishedExpires = desc("published_expires_timestamp_seconds",
		"When what is published expires unless it is renewed. Absent while nothing is published.")
	withdrawals = desc("withdrawals_total",
		"How often a published qualification was withdrawn since the daemon started.")
	hereInfo = desc("watched_info",
		"1; the labels tell what is on this host now, which a qualification has to be about. Absent while it cannot be told.",
		"runtime_digest", "config_digest", "image_digest", "harness_digest", "kernel", "boot_id")
)

// Here is what a qualification has to be about now.
type Here struct{ Runtime, Config, Image, Harness, Kernel, BootID string }

// Daemon tells what a running daemon knows beside the runs.
type Daemon struct {
	mu          sync.Mutex
	until       time.Time
	withdrawals int
	here        Here
}

// NewDaemon adds a daemon's metrics to m, with nothing published.
func NewDaemon(m *Metrics) *Daemon {
	d := &Daemon{}
	m.registry.MustRegister(d) // their names are no others'
	return d
}

// Published tells until when something is published; zero when nothing is.
func (d *Daemon) Published(until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if until.IsZero() && !d.until.IsZero() {
		d.withdrawals++
	}
	d.until = until
}

// Identified tells what is here now; the zero Here while that cannot be told.
func (d *Daemon) Identified(h Here) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.here = h
}

// Describe names every metric of a daemon (see [prometheus.Collector]).
func (d *Daemon) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []*prometheus.Desc{published, publishedExpires, withdrawals, hereInfo} {
		out <- m
	}
}

// Collect tells the state (see [prometheus.Collector]).
func (d *Daemon) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	until, n, here := d.until, d.withdrawals, d.here
	d.mu.Unlock()
	t := teller(out)
	is := 0.0
	if time.Now().Before(until) { // a daemon that hangs does not say that it has expired
		is = 1
	}
	t.gauge(published, is)
	t.moment(publishedExpires, until)
	t.tell(withdrawals, prometheus.CounterValue, float64(n), nil)
	if here != (Here{}) {
		t.gauge(hereInfo, 1, here.Runtime, here.Config, here.Image, here.Harness, here.Kernel, here.BootID)
	}
}
