package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/bounded"
	"tenwalls.dev/harness/sandbox/id"
)

// NoticeSchema identifies the form of a notice.
const NoticeSchema = "https://tenwalls.dev/schema/notice/v1"

// Notice says that the outcome on this host is another one now, and what
// changed. Times are UTC.
type Notice struct {
	Schema  string          `json:"schema"`
	ID      string          `json:"id"` // the same at every retry, so that a receiver can tell them
	Host    string          `json:"host"`
	At      time.Time       `json:"at"`
	Before  hostile.Outcome `json:"before"` // empty: nothing was known
	Outcome hostile.Outcome `json:"outcome"`
	Why     string          `json:"why"`
	Walls   []string        `json:"walls,omitempty"`   // that did not hold; bounded
	Changes []Change        `json:"changes,omitempty"` // of the identity since the last good run
	Run     string          `json:"run,omitempty"`
	Folder  string          `json:"folder,omitempty"` // of the run on this host
	Test    bool            `json:"test,omitempty"`   // nothing has happened: somebody tries whether notices arrive
}

// Messenger delivers one notice. Its error says why it was not delivered; the
// notice is then delivered again.
type Messenger interface {
	Name() string
	Deliver(context.Context, []byte) error
}

const (
	queued     = 16               // notices that wait for one messenger; the oldest goes first when there are more
	attempts   = 10               // deliveries of one notice
	firstPause = time.Second      // before the second; doubled each time
	mostPause  = 10 * time.Minute // between two
	deliverIn  = 30 * time.Second // for one delivery
	flushIn    = 5 * time.Second  // for what is queued when the daemon ends
)

// TestNotice delivers one notice that says it is a test to each receiver of the
// configuration, once, and tells what became of it, by name; nil when it arrived.
func TestNotice(ctx context.Context, c Config) (map[string]error, error) {
	to, err := c.Notify.messengers()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	data, err := json.Marshal(Notice{
		Schema: NoticeSchema, ID: string(id.New("notice")), Host: host, At: time.Now().UTC(), Outcome: hostile.Unproven,
		Why: "a test of whether notices arrive: nothing has happened", Test: true,
	})
	if err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	out := map[string]error{}
	for _, m := range to {
		bounded, cancel := context.WithTimeout(ctx, deliverIn)
		out[m.Name()] = m.Deliver(bounded, data)
		cancel()
	}
	return out, nil
}

// waitingFile is in the state folder: the notices that were not delivered yet, so
// that a daemon which is started anew goes on with them.
const waitingFile = "notices.json"

// waiting are the undelivered notices by the name of their messenger.
type waiting map[string][]json.RawMessage

// post is one messenger with a queue of its own, so that one that hangs holds up
// neither a run nor another.
type post struct {
	to   Messenger
	log  *slog.Logger
	keep func() // writes down what waits

	mu    sync.Mutex
	queue []json.RawMessage // the first may be on its way
	busy  bool              // it is
	why   string            // the last delivery failed
	wake  chan struct{}
}

// notifier hands notices to every messenger and never blocks.
type notifier struct {
	log    *slog.Logger
	file   string // empty: nothing is written down
	posts  []*post
	cancel context.CancelFunc
	wg     sync.WaitGroup
	finish chan struct{}

	writing sync.Mutex
	written waiting
}

// newNotifier goes on with what an earlier daemon left in file.
func newNotifier(log *slog.Logger, file string, to []Messenger) *notifier {
	ctx, cancel := context.WithCancel(context.Background())
	n := &notifier{log: log, file: file, cancel: cancel, finish: make(chan struct{})}
	left, err := n.recall()
	if err != nil {
		log.Warn("notices that an earlier daemon did not deliver are lost", "why", err.Error())
	}
	for _, m := range to {
		p := &post{to: m, log: log, keep: n.keep, wake: make(chan struct{}, 1)}
		n.posts = append(n.posts, p)
		for _, data := range left[m.Name()] {
			p.put(data)
		}
	}
	for _, p := range n.posts { // all are there: keep looks at each
		n.wg.Go(func() { p.work(ctx, n.finish) })
	}
	return n
}

func (n *notifier) recall() (waiting, error) {
	if n.file == "" {
		return nil, nil
	}
	data, err := bounded.Read(n.file, maxWaiting)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var w waiting
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	return w, err
}

// maxWaiting bounds the file, in bytes.
const maxWaiting = 16 << 20

// keep writes down what waits, when that is something else than was written.
func (n *notifier) keep() {
	if n.file == "" {
		return
	}
	n.writing.Lock()
	defer n.writing.Unlock()
	w := waiting{}
	for _, p := range n.posts {
		p.mu.Lock()
		if len(p.queue) > 0 {
			w[p.to.Name()] = slices.Clone(p.queue)
		}
		p.mu.Unlock()
	}
	if reflect.DeepEqual(w, n.written) || len(w) == 0 && n.written == nil && !isFile(n.file) {
		return
	}
	data, err := json.Marshal(w)
	if err == nil {
		err = replace(n.file, data, 0o600)
	}
	if err != nil {
		n.log.Error("undelivered notices cannot be kept: they would be lost at a restart", "why", err.Error())
		return
	}
	n.written = w
}

func (n *notifier) send(notice Notice) error {
	notice.Schema = NoticeSchema
	data, err := json.Marshal(notice)
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	for _, p := range n.posts {
		p.put(data)
	}
	return nil
}

// Undelivered is what a messenger did not take.
type Undelivered struct {
	To      string `json:"to"`
	Waiting int    `json:"waiting"`       // notices
	Why     string `json:"why,omitempty"` // of the last attempt
}

// undelivered is what waits, and whose last delivery failed.
func (n *notifier) undelivered() (out []Undelivered) {
	for _, p := range n.posts {
		p.mu.Lock()
		if p.why != "" {
			out = append(out, Undelivered{p.to.Name(), len(p.queue), p.why})
		}
		p.mu.Unlock()
	}
	return out
}

// close gives what is queued a moment, without retries, and ends. What is not
// delivered then stays written down.
func (n *notifier) close() {
	close(n.finish)
	stop := time.AfterFunc(flushIn, n.cancel)
	n.wg.Wait()
	stop.Stop()
	n.cancel()
	n.keep()
}

func (p *post) put(data []byte) {
	p.mu.Lock()
	p.queue = append(p.queue, data)
	if len(p.queue) > queued {
		first := 0
		if p.busy { // that one is on its way
			first = 1
		}
		p.queue = slices.Delete(p.queue, first, first+1)
		p.log.Warn("a notice was dropped: too many wait", "messenger", p.to.Name())
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// first is the one to be delivered next, nil when none waits.
func (p *post) first() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy = len(p.queue) > 0; !p.busy {
		return nil
	}
	return p.queue[0]
}

// done takes the first away.
func (p *post) done() {
	p.mu.Lock()
	p.queue, p.busy = p.queue[1:], false
	p.mu.Unlock()
	p.keep()
}

func (p *post) failed(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why = why
}

func (p *post) work(ctx context.Context, finish <-chan struct{}) {
	for {
		p.keep()
		for data := p.first(); data != nil; data = p.first() {
			if !p.deliver(ctx, finish, data) {
				return // it waits for the next daemon, and what is behind it
			}
			p.done()
		}
		select {
		case <-p.wake:
		case <-finish:
			for data := p.first(); data != nil && p.deliver(ctx, finish, data); data = p.first() {
				p.done()
			}
			return
		}
	}
}

// deliver tries until it is delivered or given up; false when the daemon ends
// before that.
func (p *post) deliver(ctx context.Context, finish <-chan struct{}, data []byte) bool {
	for n := 1; ; n++ {
		bounded, cancel := context.WithTimeout(ctx, deliverIn)
		err := p.to.Deliver(bounded, data)
		cancel()
		if err == nil {
			p.failed("")
			return true
		}
		p.failed(brief(err.Error()))
		p.log.Warn("a notice was not delivered", "messenger", p.to.Name(), "attempt", n, "why", brief(err.Error()))
		if ctx.Err() != nil {
			return false
		}
		if n == attempts {
			p.log.Error("a notice is given up", "messenger", p.to.Name())
			return true
		}
		select {
		case <-time.After(retryAfter(firstPause, n, mostPause)):
		case <-finish:
			return false
		}
	}
}
