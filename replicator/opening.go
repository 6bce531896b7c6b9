package replicator

// opened is a worker's report about a partition's log.
type opened struct {
	p    *partition
	held *heldLog
	err  error
}

// openSome starts workers for partitions whose log is to be opened: nearly always a new one, which is a few syncs.
func (m *mirror) openSome() {
	for len(m.toOpen) > 0 && m.openers < syncsAtOnce {
		p := m.toOpen[0]
		m.toOpen = m.toOpen[1:]
		m.openers++
		m.work.Go(func() {
			m.agent.flusher.drop(p)
			held := p.feed.held
			if held == nil {
				held = m.agent.logs.claim(p.tp)
			}
			err := m.agent.logs.reopen(held, *p.config.Load())
			m.inbox.put(event{opened: &opened{p: p, held: held, err: err}})
		})
	}
}

func (m *mirror) opened(o *opened) {
	m.openers--
	p := o.p
	p.desk.phase = phaseWaiting
	if o.err != nil {
		cause := causeOf(o.err)
		if isGone(o.err) {
			cause = CauseDirectoryLost
		}
		p.feed.held = o.held
		m.fail(p, failf(cause, "%v", o.err))
		return
	}
	p.setLog(o.held, o.held.open())
	m.agent.flusher.add(p)
}
