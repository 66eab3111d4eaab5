package observers

import (
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// space is one network namespace in which links and nft tables are looked for.
type space struct {
	path  string          // its bind file; empty is the namespace that the harness runs in
	known map[string]bool // what was there when armed; nil where only names count
}

// openSpaces gives the harness's own namespace, where a name must tell, and the
// places, where anything new is residue.
func openSpaces(places []string) ([]space, error) {
	spaces := []space{{}}
	for _, path := range places {
		s := space{path: path, known: map[string]bool{}}
		err := s.each(func(kind, name, _ string) { s.known[kind+" "+name] = true })
		if err != nil {
			return nil, err
		}
		spaces = append(spaces, s)
	}
	return spaces, nil
}

// look tells of the links and tables that are residue.
func (s space) look(words []string, add func(string, string, ...any)) error {
	where := "the harness's own namespace"
	if s.path != "" {
		where = s.path
	}
	return s.each(func(kind, name, alias string) {
		if s.known != nil && !s.known[kind+" "+name] || namedAfter(name, words) || namedAfter(alias, words) {
			add(kind, "%s %s in %s", map[string]string{"links": "link", "nft_tables": "nft table"}[kind], name, where)
		}
	})
}

// each lists the links and tables of the namespace.
func (s space) each(tell func(kind, name, alias string)) error {
	err := s.enter(func(links *netlink.Handle, conn *nftables.Conn) error {
		list, err := links.LinkList()
		if err != nil {
			return fmt.Errorf("list links: %w", err)
		}
		for _, link := range list {
			tell("links", link.Attrs().Name, link.Attrs().Alias)
		}
		tables, err := conn.ListTables()
		if err != nil {
			return fmt.Errorf("list nft tables: %w", err)
		}
		for _, table := range tables {
			tell("nft_tables", table.Name, "")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("scan links and nft tables of %q: %w", s.path, err)
	}
	return nil
}

// enter calls f with connections to the namespace's links and nftables.
func (s space) enter(f func(*netlink.Handle, *nftables.Conn) error) error {
	ns := netns.None()
	var options []nftables.ConnOption
	if s.path != "" {
		file, err := os.Open(s.path)
		if err != nil {
			return err
		}
		defer file.Close()
		ns = netns.NsHandle(file.Fd())
		options = append(options, nftables.WithNetNSFd(int(file.Fd())))
	}
	links, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer links.Close()
	conn, err := nftables.New(options...)
	if err != nil {
		return err
	}
	return f(links, conn)
}
