package watch

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"tenwalls.dev/harness/internal/bounded"
	"tenwalls.dev/harness/internal/yamlfile"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Config is the daemon's configuration. Times are written as 30s or 6h; unknown
// fields are refused; relative paths are taken from the folder of the file.
type Config struct {
	Version     int            `yaml:"version"`      // 1
	Runner      string         `yaml:"runner"`       // the runner configuration that production reads
	StateDir    string         `yaml:"state_dir"`    // runs, and what outlives the daemon; one daemon each
	Key         string         `yaml:"key"`          // Ed25519 private key; empty: STATE_DIR/keys/harness.key, made once
	Publish     string         `yaml:"publish"`      // the file that consumers read
	PublishLife runsc.Duration `yaml:"publish_life"` // how long it is valid without the daemon; renewed at a third of it
	ValidFor    runsc.Duration `yaml:"valid_for"`    // how long one run qualifies
	RunWithin   runsc.Duration `yaml:"run_within"`   // how long one run may take
	Socket      Socket         `yaml:"socket"`       //
	Schedule    Schedule       `yaml:"schedule"`     //
	Tick        runsc.Duration `yaml:"tick"`         // how often everything is looked at without any event
	Debounce    runsc.Duration `yaml:"debounce"`     // how long it has to be quiet before a run
	Retry       runsc.Duration `yaml:"retry"`        // first pause after an unproven run; doubled each time
	Postpone    Postpone       `yaml:"postpone"`     //
	Share       Share          `yaml:"share"`        //
	Metrics     Metrics        `yaml:"metrics"`      //
	Notify      Notify         `yaml:"notify"`       //
	KeepRuns    int            `yaml:"keep_runs"`    // folders of runs that are kept

	file string
}

// Socket is where the daemon is asked.
type Socket struct {
	Path  string `yaml:"path"`
	Group string `yaml:"group"` // whose members may ask beside root and the daemon's own user; name or number, empty: nobody
}

// Schedule is an interval or a cron expression, not both.
type Schedule struct {
	Every  runsc.Duration `yaml:"every"`
	Jitter runsc.Duration `yaml:"jitter"` // up to so much later, by chance, so that a fleet does not run at once
	Cron   string         `yaml:"cron"`   // five fields in local time, or @hourly and the like
}

// Postpone lets a scheduled run wait while the machine is busy.
type Postpone struct {
	Load   float64        `yaml:"load"`    // one-minute load average per processor above which it waits; 0: never
	AtMost runsc.Duration `yaml:"at_most"` // then it runs all the same
}

// Share is what the daemon and its child take of the processors.
type Share struct {
	Nice       int `yaml:"nice"`        // 0 to 19
	CPUPercent int `yaml:"cpu_percent"` // of one processor, of the child; 0: no bound
}

// Metrics is where they are read.
type Metrics struct {
	Listen string `yaml:"listen"` // 127.0.0.1:PORT, [::1]:PORT or unix:/PATH; empty: nowhere
}

// Notify says who is told of a change of outcome.
type Notify struct {
	Exec    []string `yaml:"exec"` // a program and its arguments; the notice is its standard input
	Webhook Webhook  `yaml:"webhook"`
}

// Webhook is told by POST.
type Webhook struct {
	URL        string `yaml:"url"`         // http or https; empty: none
	SecretFile string `yaml:"secret_file"` // the bytes that sign the body (HMAC-SHA256), without a newline at the end
}

// DefaultFile is where the subcommands look for the configuration.
const DefaultFile = "/etc/tenwalls/harness.yaml"

// DefaultConfig holds the value of every field that a file leaves out.
func DefaultConfig() Config {
	return Config{
		Version:     1,
		Runner:      "/etc/tenwalls/runner.yaml",
		StateDir:    "/var/lib/tenwalls/watch",
		Publish:     "/run/tenwalls/attestation.json",
		PublishLife: runsc.Duration(time.Minute),
		ValidFor:    runsc.Duration(24 * time.Hour),
		RunWithin:   runsc.Duration(10 * time.Minute),
		Socket:      Socket{Path: "/run/tenwalls/harness.sock"},
		Schedule:    Schedule{Every: runsc.Duration(6 * time.Hour), Jitter: runsc.Duration(10 * time.Minute)},
		Tick:        runsc.Duration(30 * time.Second),
		Debounce:    runsc.Duration(500 * time.Millisecond),
		Retry:       runsc.Duration(time.Minute),
		Postpone:    Postpone{AtMost: runsc.Duration(30 * time.Minute)},
		Share:       Share{Nice: 10},
		KeepRuns:    100,
	}
}

// kind is what an error calls the file.
const kind = "daemon configuration"

// maxConfig bounds the file, in bytes.
const maxConfig = 1 << 20

// LoadConfig reads and checks the file. Every error names the file and, where
// there is one, the line and the field.
func LoadConfig(file string) (Config, error) {
	data, err := bounded.Read(file, maxConfig)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w (deploy/harness.yaml is one with comments)", kind, err)
	}
	return ParseConfig(data, file)
}

// ParseConfig is LoadConfig over bytes; file is used in messages and for
// relative paths.
func ParseConfig(data []byte, file string) (Config, error) {
	c := DefaultConfig()
	faults := yamlfile.Decode(data, &c, brief)
	c.file = file
	if c.Schedule.Cron != "" && c.Schedule.Every == DefaultConfig().Schedule.Every && c.Schedule.Jitter == DefaultConfig().Schedule.Jitter {
		c.Schedule.Every, c.Schedule.Jitter = 0, 0 // the defaults are those of an interval
	}
	abs, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return Config{}, fmt.Errorf("%s %s: %w", kind, file, err)
	}
	for _, p := range []*string{&c.Runner, &c.StateDir, &c.Key, &c.Publish, &c.Socket.Path, &c.Notify.Webhook.SecretFile} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(abs, *p)
		}
	}
	if err := errors.Join(faults, c.Check()); err != nil {
		return Config{}, yamlfile.Locate(err, data, kind, file)
	}
	return c, nil
}

// SocketIn is the socket that a file names, as far as that can be told: also of one
// that is invalid, whose daemon has to be asked why it publishes nothing.
func SocketIn(file string) string {
	c := DefaultConfig()
	data, err := bounded.Read(file, maxConfig)
	if err == nil {
		_ = yamlfile.Decode(data, &c, brief) // what is wrong is not asked here
	}
	if abs, err := filepath.Abs(filepath.Dir(file)); err == nil && !filepath.IsAbs(c.Socket.Path) {
		return filepath.Join(abs, c.Socket.Path)
	}
	return c.Socket.Path
}

// File is where the configuration was read from.
func (c Config) File() string { return c.file }

// Check looks at every field and joins what is wrong.
func (c Config) Check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, yamlfile.FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	span := func(field string, v runsc.Duration, low, high time.Duration, why string) {
		if d := time.Duration(v); d < low || d > high {
			bad(field, "%s: must be %s to %s%s", d, low, high, why)
		}
	}
	if c.Version != 1 {
		bad("version", "is %d: this program reads version 1", c.Version)
	}
	for _, p := range []struct{ field, path string }{
		{"runner", c.Runner}, {"state_dir", c.StateDir}, {"publish", c.Publish}, {"socket.path", c.Socket.Path},
	} {
		if p.path == "" || p.path == "/" {
			bad(p.field, "%q is no path", p.path)
		}
	}
	c.apart(bad)
	span("publish_life", c.PublishLife, 3*time.Second, time.Hour, ": it outlives a killed daemon, and attestations count whole seconds")
	span("valid_for", c.ValidFor, time.Minute, 30*24*time.Hour, "")
	span("run_within", c.RunWithin, 10*time.Second, 24*time.Hour, ": one run takes about 15 s")
	span("tick", c.Tick, time.Second, time.Hour, ": a missed event costs at most a tick")
	span("debounce", c.Debounce, 10*time.Millisecond, time.Minute, "")
	span("retry", c.Retry, time.Second, 24*time.Hour, "")
	c.Schedule.check(bad, span)
	if !(c.Postpone.Load >= 0 && c.Postpone.Load <= 1000) { // neither is NaN
		bad("postpone.load", "%v: must be 0 (never wait) to 1000, per processor", c.Postpone.Load)
	}
	span("postpone.at_most", c.Postpone.AtMost, 0, 24*time.Hour, "")
	if c.Share.Nice < 0 || c.Share.Nice > 19 {
		bad("share.nice", "%d: must be 0 to 19", c.Share.Nice)
	}
	if c.Share.CPUPercent != 0 && (c.Share.CPUPercent < 10 || c.Share.CPUPercent > 100000) {
		bad("share.cpu_percent", "%d: must be 0 (no bound), or 10 or more: with less a run does not end in its time", c.Share.CPUPercent)
	}
	if c.KeepRuns < 1 || c.KeepRuns > 1000000 {
		bad("keep_runs", "%d: must be 1 to 1000000", c.KeepRuns)
	}
	if _, err := c.Socket.gid(); err != nil {
		bad("socket.group", "%s: name a group of this host, or give its number", err)
	}
	if _, _, err := c.Metrics.address(); err != nil {
		bad("metrics.listen", "%s", err)
	}
	c.Notify.check(bad)
	return errors.Join(errs...)
}

// maxSocket bounds the path of a socket, in bytes (unix(7), sun_path).
const maxSocket = 107

// apart says which two fields name one file: what is published is replaced and
// removed, and a socket is made anew.
func (c Config) apart(bad func(string, string, ...any)) {
	files := []struct{ field, path string }{
		{"this file", c.file}, {"runner", c.Runner}, {"state_dir", c.StateDir}, {"key", c.Key},
		{"notify.webhook.secret_file", c.Notify.Webhook.SecretFile}, {"publish", c.Publish}, {"socket.path", c.Socket.Path},
	}
	sockets := []struct{ field, path string }{{"socket.path", c.Socket.Path}}
	if network, address, err := c.Metrics.address(); err == nil && network == "unix" {
		files = append(files, struct{ field, path string }{"metrics.listen", address})
		sockets = append(sockets, files[len(files)-1])
	}
	for _, s := range sockets {
		if len(s.path) > maxSocket {
			bad(s.field, "%.128q is longer than a socket's path can be: %d bytes", s.path, maxSocket)
		}
	}
	first := map[string]string{}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if strings.ContainsRune(f.path, 0) {
			bad(f.field, "%.128q: no file's name holds a NUL byte", f.path)
			continue
		}
		path, err := filepath.Abs(f.path)
		if err != nil {
			path = f.path // compared as it is
		}
		if other, ok := first[path]; ok {
			bad(f.field, "%.128q is also %s: give each a path of its own", f.path, other)
			continue
		}
		first[path] = f.field
	}
}

// cronNames are those of crontab(5).
var cronNames = []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}

func (s Schedule) check(bad func(string, string, ...any), span func(string, runsc.Duration, time.Duration, time.Duration, string)) {
	if s.Cron == "" {
		span("schedule.every", s.Every, 10*time.Second, 30*24*time.Hour, "")
		span("schedule.jitter", s.Jitter, 0, time.Duration(s.Every), ": no more than schedule.every")
		return
	}
	if s.Every != 0 || s.Jitter != 0 {
		bad("schedule", "has both cron and an interval: keep one")
	}
	named := strings.HasPrefix(s.Cron, "@")
	// With six fields it would count seconds, and gronx knows names of its own that do.
	if len(s.Cron) > 256 || named && !slices.Contains(cronNames, s.Cron) || !named && len(strings.Fields(s.Cron)) != 5 || !gronx.IsValid(s.Cron) {
		bad("schedule.cron", "%.64q is no cron expression of five fields (\"0 */6 * * *\"), nor one of %s", s.Cron, strings.Join(cronNames, ", "))
	} else if _, err := gronx.NextTick(s.Cron, false); err != nil {
		bad("schedule.cron", "%.64q never comes", s.Cron)
	}
}

// CheckFiles looks at what the configuration names for the daemon itself: the
// key, the hook and the secret. The runner configuration is [runsc.LoadConfig]'s.
func (c Config) CheckFiles() error {
	var errs []error
	if c.Key != "" {
		if _, err := attest.LoadPrivateKey(c.Key); err != nil {
			errs = append(errs, fmt.Errorf("key: %w", err))
		}
	}
	if len(c.Notify.Exec) > 0 {
		if st, err := os.Stat(c.Notify.Exec[0]); err != nil {
			errs = append(errs, fmt.Errorf("notify.exec[0]: %w", err))
		} else if !st.Mode().IsRegular() || st.Mode().Perm()&0o111 == 0 {
			errs = append(errs, fmt.Errorf("notify.exec[0]: %s is no program: chmod +x it", c.Notify.Exec[0]))
		}
	}
	if _, err := c.Notify.messengers(); err != nil {
		errs = append(errs, err)
	}
	if err := replaceable(c.Publish); err != nil {
		errs = append(errs, err)
	}
	for field, dir := range map[string]string{"state_dir": c.StateDir, "publish": filepath.Dir(c.Publish), "socket.path": filepath.Dir(c.Socket.Path)} {
		if st, err := os.Stat(dir); err == nil && !st.IsDir() {
			errs = append(errs, fmt.Errorf("%s: %s is there and is no folder: move it away, or name another", field, dir))
		}
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s %s: %w", kind, c.file, err)
	}
	return errors.Join(errs...)
}

// Warnings are what is allowed and hardly meant.
func (c Config) Warnings() (out []string) {
	if every, valid := time.Duration(c.Schedule.Every+c.Schedule.Jitter), time.Duration(c.ValidFor); every >= valid {
		out = append(out, fmt.Sprintf("schedule: a run is due after %s at the latest, and valid_for is %s: the qualification expires in between", every, valid))
	}
	dir := filepath.Dir(c.Publish)
	if st, err := os.Stat(dir); err == nil && st.Mode().Perm()&0o022 != 0 {
		out = append(out, fmt.Sprintf("publish: %s can be written by others (%s), who can put an older attestation back until that expires: chmod go-w it", dir, st.Mode().Perm()))
	}
	return out
}

// gid is the group's number; -1 when there is none.
func (s Socket) gid() (int, error) {
	if s.Group == "" {
		return -1, nil
	}
	if n, err := strconv.ParseUint(s.Group, 10, 31); err == nil {
		return int(n), nil
	}
	g, err := user.LookupGroup(s.Group)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// address is the network and address to listen on; both empty for nowhere. Only
// this host itself can read the metrics: they name digests and walls.
func (m Metrics) address() (network, address string, err error) {
	if m.Listen == "" {
		return "", "", nil
	}
	if path, ok := strings.CutPrefix(m.Listen, "unix:"); ok {
		if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
			return "", "", fmt.Errorf("%.128q: a socket is written unix:/PATH, with an absolute path", m.Listen)
		}
		return "unix", path, nil
	}
	host, port, err := net.SplitHostPort(m.Listen)
	if err != nil {
		return "", "", fmt.Errorf("%.128q: write 127.0.0.1:PORT, [::1]:PORT or unix:/PATH", m.Listen)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", "", fmt.Errorf("%.128q is not a loopback address: use 127.0.0.1, [::1] or unix:/PATH", m.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("%.128q: %.16q is no port", m.Listen, port)
	}
	return "tcp", m.Listen, nil
}

func (n Notify) check(bad func(string, string, ...any)) {
	if len(n.Exec) > 0 && !filepath.IsAbs(n.Exec[0]) {
		bad("notify.exec[0]", "%.128q is not an absolute path: no PATH is searched", n.Exec[0])
	}
	if n.Webhook.URL == "" {
		if n.Webhook.SecretFile != "" {
			bad("notify.webhook.secret_file", "is given without notify.webhook.url")
		}
		return
	}
	u, err := url.Parse(n.Webhook.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		bad("notify.webhook.url", "is no http or https URL with a host")
	}
	if n.Webhook.SecretFile == "" {
		bad("notify.webhook", "needs secret_file: a body that nobody signed could be anybody's")
	}
}

// settled tells what cannot be changed under a running daemon: empty when next
// differs from c in nothing of that.
func (c Config) settled(next Config) string {
	for _, f := range []struct {
		name      string
		now, next any
	}{
		{"state_dir", c.StateDir, next.StateDir}, {"key", c.Key, next.Key}, {"publish", c.Publish, next.Publish},
		{"socket", c.Socket, next.Socket}, {"metrics.listen", c.Metrics.Listen, next.Metrics.Listen},
		{"notify", c.Notify, next.Notify}, {"share", c.Share, next.Share},
	} {
		if !reflect.DeepEqual(f.now, f.next) {
			return f.name
		}
	}
	return ""
}
