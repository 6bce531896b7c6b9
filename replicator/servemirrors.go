package replicator

import (
	"strings"

	"segmirror/fetchwire"
)

// listMirrors lists the mirrors of this agent. By offering it an agent is told from a broker.
func (c *client) listMirrors(*fetchwire.ListMirrorsRequest) *fetchwire.ListMirrorsResponse {
	resp := &fetchwire.ListMirrorsResponse{}
	for _, m := range c.server.agent.mirrors {
		topics := map[string]bool{}
		m.board.mu.Lock()
		for _, p := range m.board.parts {
			topics[p.tp.Topic] = true
		}
		id := m.board.clusterID
		m.board.mu.Unlock()
		resp.Mirrors = append(resp.Mirrors, fetchwire.ListedMirror{
			MirrorName: m.cfg.Name, SourceBootstrap: strings.Join(m.cfg.Client.BootstrapServers, ","),
			SourceClusterID: id, TopicCount: int32(len(topics)),
		})
	}
	return resp
}
