package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Cluster is a running Kafka cluster of this process.
type Cluster struct {
	cfg            Config
	dist           Dist
	dir            string
	ownDir         bool // Close removes dir
	id             string
	controllerPort int
	brokers        []*Broker
	spawner        *spawner
	client         *kgo.Client
	admin          *kadm.Client
	closeOnce      sync.Once
	closeErr       error
}

// Start installs Kafka if need be, waits for the machine's lock, formats the nodes' directories and starts them. It
// returns when every broker answers and lists all of them.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	dist, err := Install(ctx)
	if err != nil {
		return nil, err
	}
	if err := machine.acquire(ctx, cfg.brokers()); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, dist: dist, dir: cfg.Dir, spawner: newSpawner(), id: newClusterID()}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "segmirror-kafka-")
		if err != nil {
			return err
		}
		c.dir, c.ownDir = dir, true
	}
	if err := c.layOut(); err != nil {
		return err
	}
	if err := c.format(ctx); err != nil {
		return err
	}
	return c.StartAll(ctx)
}

// layOut chooses ports and writes each node's configuration.
func (c *Cluster) layOut() error {
	ports, err := freePorts(c.cfg.brokers()*(1+len(c.cfg.Listeners)) + 1)
	if err != nil {
		return err
	}
	c.controllerPort = ports[0]
	var seeds []string
	for i := range c.cfg.brokers() {
		b := &Broker{ID: int32(i + 1), Dir: filepath.Join(c.dir, fmt.Sprintf("node-%d", i+1)), cluster: c, port: ports[i+1]}
		b.more = make(map[string]int)
		for name := range c.cfg.Listeners {
			b.more[name] = ports[len(ports)-1]
			ports = ports[:len(ports)-1]
		}
		for j := range c.cfg.logDirs() {
			b.LogDirs = append(b.LogDirs, filepath.Join(b.Dir, fmt.Sprintf("data-%d", j)))
		}
		c.brokers = append(c.brokers, b)
		seeds = append(seeds, b.Addr())
		if err := os.MkdirAll(b.Dir, 0o755); err != nil {
			return err
		}
		if err := c.writeConfig(b); err != nil {
			return err
		}
	}
	c.client, err = kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(minMetadataAge))
	if err != nil {
		return err
	}
	c.admin = kadm.NewClient(c.client)
	return nil
}

func (c *Cluster) writeConfig(b *Broker) error {
	log4j := log4jProperties(filepath.Join(b.Dir, "server.log"))
	return errors.Join(
		os.WriteFile(filepath.Join(b.Dir, "server.properties"), []byte(c.serverProperties(b)), 0o644),
		os.WriteFile(filepath.Join(b.Dir, "log4j2.properties"), []byte(log4j), 0o644))
}

// format runs kafka-storage format for every node at once.
func (c *Cluster) format(ctx context.Context) error {
	errs := make([]error, len(c.brokers))
	var wg sync.WaitGroup
	for i, b := range c.brokers {
		wg.Go(func() {
			args := []string{"format", "-t", c.id, "-c", filepath.Join(b.Dir, "server.properties")}
			for name, level := range c.cfg.Features {
				args = append(args, "--feature", fmt.Sprintf("%s=%d", name, level))
			}
			out, err := c.dist.Tool(ctx, "kafka.tools.StorageTool", args...)
			if err == nil && out.ExitCode != 0 {
				err = fmt.Errorf("kafka-storage format: exit %d\n%s%s", out.ExitCode, out.Stdout, out.Stderr)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// StartAll starts every broker that does not run and waits until each lists all.
func (c *Cluster) StartAll(ctx context.Context) error {
	for _, b := range c.brokers {
		if b.Running() {
			continue
		}
		if err := b.launch(); err != nil {
			return err
		}
	}
	for _, b := range c.brokers {
		if err := b.awaitReady(ctx); err != nil {
			return err
		}
	}
	return c.awaitMembership(ctx)
}

// awaitMembership waits until every running broker lists all running brokers.
func (c *Cluster) awaitMembership(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return poll(ctx, "all brokers to see each other", func() (bool, error) {
		for _, b := range c.brokers {
			ids, err := brokerIDs(ctx, b.Addr())
			if err != nil || len(ids) < len(c.brokers) {
				return false, nil
			}
		}
		return true, nil
	})
}

// StopAll shuts all brokers down in order, the controller's node last.
func (c *Cluster) StopAll(ctx context.Context) error {
	var errs []error
	for i := len(c.brokers) - 1; i >= 0; i-- {
		errs = append(errs, c.brokers[i].Stop(ctx))
	}
	return errors.Join(errs...)
}

// ID is the cluster id.
func (c *Cluster) ID() string { return c.id }

// Dir is the folder that holds the nodes.
func (c *Cluster) Dir() string { return c.dir }

// Dist is the Kafka the cluster runs.
func (c *Cluster) Dist() Dist { return c.dist }

// Brokers lists the nodes by id. Broker ids are 1..n.
func (c *Cluster) Brokers() []*Broker { return c.brokers }

// Broker returns the node with that id.
func (c *Cluster) Broker(id int32) *Broker { return c.brokers[id-1] }

// Bootstrap is the bootstrap.servers value: every broker's address.
func (c *Cluster) Bootstrap() string {
	addrs := make([]string, len(c.brokers))
	for i, b := range c.brokers {
		addrs[i] = b.Addr()
	}
	return strings.Join(addrs, ",")
}

// Admin is the cluster's own admin client.
func (c *Cluster) Admin() *kadm.Client { return c.admin }

// Client is the cluster's own client, for requests; it lives until Close.
func (c *Cluster) Client() *kgo.Client { return c.client }

// NewClient returns a franz-go client of the cluster, which the caller closes.
func (c *Cluster) NewClient(opts ...kgo.Opt) (*kgo.Client, error) {
	base := []kgo.Opt{kgo.SeedBrokers(strings.Split(c.Bootstrap(), ",")...), kgo.MetadataMinAge(minMetadataAge)}
	return kgo.NewClient(append(base, opts...)...)
}

// Close kills what still runs, removes the directories it made and gives the machine's lock back. Stop brokers in
// order before it when their files matter. Further calls return the first one's error.
func (c *Cluster) Close() error {
	c.closeOnce.Do(func() {
		var errs []error
		if c.client != nil {
			c.client.Close()
		}
		for _, b := range c.brokers {
			errs = append(errs, b.Kill())
		}
		c.spawner.close()
		if c.ownDir {
			errs = append(errs, os.RemoveAll(c.dir))
		}
		machine.release(c.cfg.brokers())
		c.closeErr = errors.Join(errs...)
	})
	return c.closeErr
}

// freePorts finds n ports on the loopback that nothing listens on, below the ephemeral range (32768 up on Linux).
func freePorts(n int) ([]int, error) {
	const lowest, highest, tries = 20000, 32000, 1000
	var ports []int
	for range tries {
		if len(ports) == n {
			return ports, nil
		}
		port := lowest + rand.IntN(highest-lowest)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // taken
		}
		defer l.Close() // held until all are found, so that none is found twice
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d", n, lowest, highest)
}
