package replicator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metricsServer serves /metrics and /healthz.
type metricsServer struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{} // closed when the server has returned
}

func listenMetrics(a *Agent, addr string) (*metricsServer, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics.listener: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{agent: a}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		text, well := a.health()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !well {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, text) // the client hung up: nothing to do
	})
	s := &metricsServer{
		listener: listener,
		server:   &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		done:     make(chan struct{}),
	}
	go func() { // ended and waited for by close
		defer close(s.done)
		s.server.Serve(listener) // says ErrServerClosed
	}()
	return s, nil
}

func (s *metricsServer) addr() string { return s.listener.Addr().String() }

func (s *metricsServer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.server.Close()
	}
	<-s.done
	return err
}

// health says whether the agent itself can work, and what of its mirrors does not. A FAILED partition or a source
// that is away is no fault a restart would mend: they are named, and the answer stays 200.
func (a *Agent) health() (text string, well bool) {
	var b strings.Builder
	well = true
	if err := a.states.err(); err != nil {
		well = false
		fmt.Fprintf(&b, "state log: %v\n", err)
	}
	if err := a.metadata.err(); err != nil {
		well = false
		fmt.Fprintf(&b, "metadata log: %v\n", err)
	}
	status := a.Status()
	for _, d := range status.LogDirs {
		if d.Full {
			well = false
			fmt.Fprintf(&b, "log dir %s: full, %d bytes free\n", d.Path, d.FreeBytes)
		}
	}
	for _, m := range status.Mirrors {
		if m.RefreshError != "" {
			fmt.Fprintf(&b, "mirror %s: source: %s\n", m.Name, strings.ReplaceAll(m.RefreshError, "\n", "; "))
		}
		fmt.Fprintf(&b, "mirror %s: %s\n", m.Name, m.summary())
	}
	if well {
		return "ok\n" + b.String(), true
	}
	return "not well\n" + b.String(), false
}

// summary counts a mirror's partitions by state, and its topics that are not wanted mirrored.
func (m *MirrorStatus) summary() string {
	states := map[State]int{}
	topics := map[Wanted]map[string]bool{WantedPaused: {}, WantedStopped: {}}
	for i := range m.Partitions {
		p := &m.Partitions[i]
		states[p.State]++
		if topics[p.Wanted] != nil {
			topics[p.Wanted][p.Topic] = true
		}
	}
	text := fmt.Sprintf("%d partitions, %d mirroring, %d failed", len(m.Partitions), states[StateMirroring],
		states[StateFailed])
	for _, state := range []State{StatePreparing, StatePausing, StatePaused, StateStopping, StateStopped} {
		if n := states[state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, strings.ToLower(state.String()))
		}
	}
	for _, want := range []Wanted{WantedPaused, WantedStopped} {
		if n := len(topics[want]); n > 0 {
			text += fmt.Sprintf("; %d topics wanted %s", n, want)
		}
	}
	return text
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
