package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tenwalls.dev/harness/hostile"
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

// post is one messenger with a queue of its own, so that one that hangs holds up
// neither a run nor another.
type post struct {
	to  Messenger
	log *slog.Logger

	mu    sync.Mutex
	queue [][]byte
	wake  chan struct{}
}

// notifier hands notices to every messenger and never blocks.
type notifier struct {
	posts  []*post
	cancel context.CancelFunc
	wg     sync.WaitGroup
	finish chan struct{}
}

func newNotifier(log *slog.Logger, to []Messenger) *notifier {
	ctx, cancel := context.WithCancel(context.Background())
	n := &notifier{cancel: cancel, finish: make(chan struct{})}
	for _, m := range to {
		p := &post{to: m, log: log, wake: make(chan struct{}, 1)}
		n.posts = append(n.posts, p)
		n.wg.Go(func() { p.work(ctx, n.finish) })
	}
	return n
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

// close gives what is queued a moment, without retries, and ends.
func (n *notifier) close() {
	close(n.finish)
	stop := time.AfterFunc(flushIn, n.cancel)
	n.wg.Wait()
	stop.Stop()
	n.cancel()
}

func (p *post) put(data []byte) {
	p.mu.Lock()
	p.queue = append(p.queue, data)
	if len(p.queue) > queued {
		p.queue = p.queue[1:]
		p.log.Warn("a notice was dropped: too many wait", "messenger", p.to.Name())
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *post) take() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil
	}
	data := p.queue[0]
	p.queue = p.queue[1:]
	return data
}

func (p *post) work(ctx context.Context, finish <-chan struct{}) {
	for {
		for data := p.take(); data != nil; data = p.take() {
			p.deliver(ctx, finish, data)
		}
		select {
		case <-p.wake:
		case <-finish:
			for data := p.take(); data != nil; data = p.take() {
				p.deliver(ctx, finish, data)
			}
			return
		}
	}
}

// deliver tries until it is delivered, or given up.
func (p *post) deliver(ctx context.Context, finish <-chan struct{}, data []byte) {
	for n := 1; ; n++ {
		bounded, cancel := context.WithTimeout(ctx, deliverIn)
		err := p.to.Deliver(bounded, data)
		cancel()
		if err == nil {
			return
		}
		p.log.Warn("a notice was not delivered", "messenger", p.to.Name(), "attempt", n, "why", brief(err.Error()))
		if n == attempts || ctx.Err() != nil {
			p.log.Error("a notice is given up", "messenger", p.to.Name())
			return
		}
		select {
		case <-time.After(retryAfter(firstPause, n, mostPause)):
		case <-finish:
			return
		}
	}
}
