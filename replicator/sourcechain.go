package replicator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"segmirror/fetchwire"
)

// maxChain bounds how many clusters a topic may come through.
const maxChain = 64

// upstream is what a source that is an agent says of a topic it mirrors itself.
type upstream struct {
	chain   []string        // the clusters its records come through, nearest first; empty = it ends there
	stopped bool            // every partition is STOPPED there
	ends    map[int32]int64 // last mirrored ends of those that are, by partition
}

// upstreams asks a source that is an agent where its topics come from; nil of a broker, which mirrors nothing.
func (s *source) upstreams(ctx context.Context) (map[string]upstream, error) {
	if _, err := s.conn.Version(fetchwire.KeyDescribeMirrors); err != nil || !s.conn.Agent() {
		return nil, nil //nolint:nilnil // nothing is mirrored there
	}
	var resp fetchwire.DescribeMirrorsResponse
	if err := s.conn.Call(ctx, &fetchwire.DescribeMirrorsRequest{}, &resp); err != nil {
		return nil, fmt.Errorf("%s: %w", s.conn.Addr(), err)
	}
	if resp.ErrorCode != fetchwire.CodeNone {
		return nil, fmt.Errorf("%s: mirrors: %w", s.conn.Addr(), fetchwire.CodeError(resp.ErrorCode))
	}
	out := map[string]upstream{}
	for _, m := range resp.Mirrors {
		for _, t := range m.Topics {
			u := upstream{chain: t.SourceChain, stopped: len(t.Partitions) > 0, ends: map[int32]int64{}}
			for _, p := range t.Partitions {
				u.stopped = u.stopped && p.State == StateStopped.String()
				u.ends[p.PartitionIndex] = p.LastMirroredEnd
			}
			if len(out[t.TopicName].chain) == 0 { // a topic is in one mirror; what another has stopped says nothing
				out[t.TopicName] = u
			}
		}
	}
	return out, nil
}

// askUpstreams adds to an answer what an agent says. One that refuses is believed to mirror nothing.
func (s *source) askUpstreams(ctx context.Context, out *refresh) (err error) {
	out.agent = s.conn.Agent()
	out.upstreams, err = s.upstreams(ctx)
	var refused fetchwire.KafkaError
	if errors.As(err, &refused) {
		s.logger.Warn("the source does not say where its topics come from: a loop would not be noticed", slog.Any("err", err))
		return nil
	}
	return err
}

// follow takes up through which clusters a topic comes, and says why it must not be mirrored that way: it would come
// back to where it went out.
func (m *mirror) follow(t *topic, up upstream) *failure {
	source := m.board.clusterID
	chain := append([]string{source}, up.chain[:min(len(up.chain), maxChain)]...)
	own := m.agent.clusterID()
	seen := chain
	if m.agent.cfg.Role == roleReplica {
		seen = chain[1:] // the first agent of our cluster; what it mirrors from here would be a loop all the same
	}
	at := slices.Index(seen, own)
	m.board.mu.Lock()
	t.chain = chain
	if at >= 0 {
		t.chain = nil // nothing comes through here
	}
	m.board.mu.Unlock()
	if at < 0 {
		return nil
	}
	at += len(chain) - len(seen)
	loop := strings.Join(append([]string{own}, chain[:at+1]...), " <- ")
	return failf(CauseLoop, "mirror loop: %s: %s", t.name, loop)
}

// chainOf returns through which clusters a topic comes, nearest first; nothing when it is refused. Any goroutine.
func (m *mirror) chainOf(t *topic) []string {
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	return t.chain
}
