package watch

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/gofrs/flock"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"tenwalls.dev/harness/reports/attest"
)

// Parts are what a real daemon is given beside its configuration.
type Parts struct {
	Config  Config
	Host    *Host
	Ledger  Ledger       // nil: none
	Meter   Meter        // nil: none
	Metrics http.Handler // served at /metrics, when the configuration says where; nil: none
	Compare Comparison   // nil: none
	Hangup  <-chan os.Signal
	Version string
	Log     *slog.Logger
}

// Serve is a real daemon: it takes the state folder, withdraws what an earlier
// daemon left, ends that one's run, and works until the context ends.
func Serve(ctx context.Context, p Parts) (err error) {
	cfg := p.Config
	// What an earlier daemon left is taken back before anything that can take long
	// or fail. Two that publish one file would replace and withdraw each other's.
	if err := os.MkdirAll(filepath.Dir(cfg.Publish), 0o755); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	mine := publishLock(cfg.Publish)
	alone, err := lock(mine, "publishes "+cfg.Publish, "publish, state_dir and socket")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone()) }()
	publisher := &Publisher{Path: cfg.Publish}
	if err := replaceable(cfg.Publish); err != nil {
		return err
	}
	if err := publisher.Withdraw(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(cfg.StateDir, runsFolder), 0o755); err != nil {
		return fmt.Errorf("state_dir: %w", err)
	}
	unlock, err := lock(filepath.Join(cfg.StateDir, "lock"), "runs with this state_dir", "state_dir and socket")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	keyFile, key, err := signingKey(cfg)
	if err != nil {
		return err
	}
	publisher.Key = key
	nice, err := cfg.Share.lower()
	if err != nil {
		return err
	}
	runs := filepath.Join(cfg.StateDir, runsFolder)
	if err := endOrphan(ctx, runs); err != nil {
		return err
	}
	if err := unbind(cgroupRoot, boundGroup(runs)); err != nil {
		return err
	}
	messengers, err := cfg.Notify.messengers()
	if err != nil {
		return err
	}
	state, err := same(cfg.StateDir, "state_dir")
	if err != nil {
		return err
	}
	publish, err := same(mine, "the lock of publish")
	if err != nil {
		return err
	}
	alive := func() error { return errors.Join(state(), publish()) }
	heart, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("watchdog of the service manager: %w", err)
	}
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	o := Options{
		Config: cfg, Reader: p.Host, Publisher: publisher, Ledger: p.Ledger, Meter: p.Meter, Messengers: messengers, Alive: alive,
		Suite: &Child{Program: p.Host.Executable, Runs: runs, Key: keyFile, Public: key.Public().(ed25519.PublicKey), Compare: p.Compare, Nice: nice, Log: p.Log},
		Tell:  tellManager, Heartbeat: heart / 2, Version: p.Version, HostName: name, Log: p.Log,
	}
	files, err := OpenFiles()
	if err != nil {
		p.Log.Warn("changes are seen at ticks only", "why", err.Error())
	} else {
		o.Files = files
		defer func() { err = errors.Join(err, files.Close()) }()
	}
	d, err := New(o)
	if err != nil {
		return err
	}
	return p.run(ctx, d)
}

// run works and answers, and ends both together.
func (p Parts) run(ctx context.Context, d *Daemon) error {
	gid, err := p.Config.Socket.gid()
	if err != nil {
		return fmt.Errorf("socket.group: %w", err)
	}
	socket, err := listenUnix(p.Config.Socket.Path, gid)
	if err != nil {
		return err
	}
	metrics, err := p.listenMetrics()
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	answering, stop := context.WithCancel(context.Background()) // to the very end
	group.Go(func() error { defer stop(); return d.Run(ctx) })
	group.Go(func() error {
		return answer(answering, d.Handler(), socket, p.Config.Socket.Path, gid, socketEvery, p.Log)
	})
	if metrics != nil {
		mux := http.NewServeMux()
		d.healthy(mux)
		if p.Metrics != nil {
			mux.Handle("GET /metrics", p.Metrics)
		}
		group.Go(func() error { return serve(answering, server(mux, p.Log), metrics) })
	}
	group.Go(func() error {
		for {
			select {
			case <-answering.Done():
				return nil
			case <-p.Hangup:
				d.Ask("SIGHUP")
			}
		}
	})
	return group.Wait()
}

func (p Parts) listenMetrics() (net.Listener, error) {
	network, address, err := p.Config.Metrics.address()
	switch {
	case err != nil:
		return nil, fmt.Errorf("metrics.listen: %w", err)
	case network == "":
		return nil, nil
	case network == "unix":
		l, err := listenUnix(address, -1)
		if err != nil {
			return nil, fmt.Errorf("metrics.listen: %w", err)
		}
		return newGate(l, -1), nil
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("metrics.listen: %w", err)
	}
	return netutil.LimitListener(l, maxConnections), nil // anybody on this host can connect
}

// publishLock is beside the published file. It stays when the daemon has ended: to
// remove it would be to take it from under whoever has just opened it.
func publishLock(publish string) string {
	dir, name := filepath.Split(publish)
	return filepath.Join(dir, "."+name+".lock")
}

// lock makes this the only daemon that does what a lock file stands for. other
// are the fields that another one has to have of its own.
func lock(path, does, other string) (func() error, error) {
	l := flock.New(path, flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, fmt.Errorf("another harness watch %s (it holds %s): end it, or give this one another %s", does, path, other)
	}
	return l.Unlock, nil
}

// same returns a check that a folder or file is still the one that it is now:
// with another in its place another daemon could have been let in.
func same(path, what string) (func() error, error) {
	began, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return func() error {
		now, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%s was removed: %w: restart the daemon", what, err)
		}
		if !os.SameFile(began, now) {
			return fmt.Errorf("%s: %s is another one now, which another daemon could have taken: restart the daemon", what, path)
		}
		return nil
	}, nil
}

// signingKey is the configured key, or the daemon's own, made once.
func signingKey(cfg Config) (string, ed25519.PrivateKey, error) {
	file := cfg.Key
	if file == "" {
		dir := filepath.Join(cfg.StateDir, "keys")
		file = filepath.Join(dir, "harness.key")
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return "", nil, fmt.Errorf("key: %w", err)
			}
			if _, err := attest.GenerateKey(file, filepath.Join(dir, "harness.pub")); err != nil {
				return "", nil, fmt.Errorf("key: %w", err)
			}
		}
	}
	key, err := attest.LoadPrivateKey(file)
	if err != nil {
		return "", nil, fmt.Errorf("key: %w", err)
	}
	return file, key, nil
}

func (n Notify) messengers() (out []Messenger, err error) {
	if len(n.Exec) > 0 {
		out = append(out, ExecHook{Argv: n.Exec})
	}
	if n.Webhook.URL != "" {
		hook, err := NewWebhook(n.Webhook)
		if err != nil {
			return nil, err
		}
		out = append(out, hook)
	}
	return out, nil
}

// tellManager is sd_notify(3); without a service manager it does nothing.
func tellManager(state string) {
	// What cannot be told shows at the manager as silence, and is its to answer.
	_, _ = daemon.SdNotify(false, state)
}
