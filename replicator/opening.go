package replicator

// opened is a worker's report about a partition's log.
type opened struct {
	p    *partition
	held *heldLog
	err  error
}

// startWork starts workers that open and settle logs: nearly always a few syncs each.
func (m *mirror) startWork() {
	for len(m.toWork) > 0 && m.workers < syncsAtOnce {
		do := m.toWork[0]
		m.toWork = m.toWork[1:]
		m.workers++
		m.work.Go(do)
	}
}

// open has a partition's log opened.
func (m *mirror) open(p *partition) {
	p.desk.phase = phaseOpening
	held, cfg := p.feed.held, *p.config.Load()
	m.toWork = append(m.toWork, func() {
		m.agent.flusher.drop(p)
		if held == nil {
			held = m.agent.logs.claim(p.tp)
		}
		err := m.agent.logs.reopen(held, cfg)
		m.inbox.put(event{opened: &opened{p: p, held: held, err: err}})
	})
}

func (m *mirror) opened(o *opened) {
	m.workers--
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
