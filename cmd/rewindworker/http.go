package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/sync/errgroup"
)

const (
	// maxPollAge is far above the pauses between polls. A poll that fails is one, too: a database that is away is no reason to restart.
	maxPollAge = time.Minute
	// requestTimeout is for sending a request, and for getting what is under way when the server closes.
	requestTimeout = 5 * time.Second
)

// httpAddress is where to listen: HOST:PORT; :PORT for all of this host's addresses; PORT for loopback.
type httpAddress string

func (a *httpAddress) UnmarshalText(text []byte) error {
	host, port := "127.0.0.1", string(text)
	if _, err := strconv.Atoi(port); err != nil {
		if host, port, err = net.SplitHostPort(port); err != nil {
			return fmt.Errorf("read where to listen: %w", err)
		}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is no port from 0 to 65535", port)
	}
	*a = httpAddress(net.JoinHostPort(host, port))
	return nil
}

// newMeters returns a provider, and a handler that shows in Prometheus' format what it measures.
func newMeters() (*metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("export metrics: %w", err)
	}
	return metric.NewMeterProvider(metric.WithReader(reader)), promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// observed is what HTTP shows of a worker.
type observed interface {
	Ready() bool
	LastPoll() time.Time
}

// newHandler answers for a worker that starts now.
func newHandler(w observed, metrics http.Handler) http.Handler {
	started := time.Now()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(response http.ResponseWriter, _ *http.Request) {
		last := w.LastPoll()
		if last.IsZero() {
			last = started
		}
		age := time.Since(last)
		answer(response, age <= maxPollAge, fmt.Sprintf("looked for work %v ago", age.Round(time.Millisecond)))
	})
	mux.HandleFunc("GET /readyz", func(response http.ResponseWriter, _ *http.Request) {
		if w.Ready() {
			answer(response, true, "ready")
		} else {
			answer(response, false, "not ready")
		}
	})
	return mux
}

func answer(response http.ResponseWriter, well bool, text string) {
	response.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !well {
		response.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(response, text)
}

// serveWhile serves HTTP until a task ends. The task is cancelled if serving fails.
func serveWhile(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, task func(context.Context) error) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: requestTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	log.Info("serving HTTP", slog.String("address", listener.Addr().String()))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		err := task(ctx)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if server.Shutdown(closing) != nil {
			_ = server.Close() // what is still under way is cut off
		}
		return err
	})
	return group.Wait()
}
