package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lockedBuffer is for a writer and a reader beside it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come true:", what)
		}
	}
}

// get returns the answer to a request on a connection of its own; status 0: there was none.
func get(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestRunServesHTTP(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	runCommand(t, exitDone, "options", "set", "inline_rewind_events=0", "debounce_window=0s", "rewind_share=1", database)
	exec(t, pool, `select rewind.append_events('t', 'a', '[{"type": "x", "time": "2020-01-01T00:00:00Z"}]')`)
	exec(t, pool, `select rewind.append_events('t', 'c', '[{"type": "poison"}]')`)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stderr lockedBuffer
	exited := make(chan int, 1)
	go func() {
		exited <- run(ctx, []string{"run", "--http=127.0.0.1:0", database}, io.Discard, &stderr, func(string) string { return "" })
	}()
	var address string
	eventually(t, "it serves HTTP", func() bool {
		match := regexp.MustCompile(`serving HTTP" address=(\S+)`).FindStringSubmatch(stderr.String())
		if match != nil {
			address = match[1]
		}
		return match != nil
	})
	eventually(t, "it is ready", func() bool {
		status, _ := get(t, address, "/readyz")
		return status == http.StatusOK
	})
	if status, body := get(t, address, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d %s", status, body)
	}
	if status, _ := get(t, address, "/"); status != http.StatusNotFound {
		t.Errorf("/: %d", status)
	}

	var metrics string
	eventually(t, "a rewind and a failure are measured", func() bool {
		_, metrics = get(t, address, "/metrics")
		return strings.Contains(metrics, "rewind_perspective_rewind_duration") && strings.Contains(metrics, "rewind_perspective_errors")
	})
	for _, line := range []string{
		`rewind_perspective_rewinds_total{has_snapshot="false",path="locked",perspective_name="tally"} 1`,
		`rewind_perspective_errors_total{perspective_name="tally"} `,
		`rewind_perspective_lag_records{perspective_name="tally"} 0`,
	} {
		if !strings.Contains(metrics, "\n"+line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	t.Run("docs_have_the_names", func(t *testing.T) {
		doc, err := os.ReadFile("../../docs/operations.md")
		if err != nil {
			t.Fatal(err)
		}
		var exposed []string
		for _, match := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(metrics, -1) {
			exposed = append(exposed, match[1])
		}
		documented := regexp.MustCompile(`rewind_perspective_\w+`).FindAllString(string(doc), -1)
		slices.Sort(exposed)
		slices.Sort(documented)
		if diff := cmp.Diff(exposed, slices.Compact(documented)); diff != "" {
			t.Errorf("metrics (-exposed +docs/operations.md):\n%s", diff)
		}
	})

	stop()
	if code := <-exited; code != exitDone {
		t.Errorf("it exits with %d: %s", code, stderr.String())
	}
	if status, _ := get(t, address, "/healthz"); status != 0 {
		t.Error("it still serves after its end")
	}
}

// observedStub is a worker as HTTP sees it.
type observedStub struct {
	ready    bool
	lastPoll time.Time
}

func (s observedStub) Ready() bool         { return s.ready }
func (s observedStub) LastPoll() time.Time { return s.lastPoll }

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		worker observedStub
		want   int
	}{
		"not_polled_yet": {"/healthz", observedStub{}, http.StatusOK},
		"polled":         {"/healthz", observedStub{lastPoll: time.Now()}, http.StatusOK},
		"hangs":          {"/healthz", observedStub{lastPoll: time.Now().Add(-2 * maxPollAge), ready: true}, http.StatusServiceUnavailable},
		"not_ready":      {"/readyz", observedStub{lastPoll: time.Now()}, http.StatusServiceUnavailable},
		"ready":          {"/readyz", observedStub{ready: true}, http.StatusOK},
	} {
		recorder := httptest.NewRecorder()
		newHandler(c.worker, http.NotFoundHandler()).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, c.path, nil))
		if recorder.Code != c.want {
			t.Errorf("%s: %d, want %d: %s", name, recorder.Code, c.want, recorder.Body)
		}
	}
}

func TestHTTPAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]httpAddress{
		"9090":           "127.0.0.1:9090",
		":9090":          ":9090",
		"localhost:9090": "localhost:9090",
		"[::1]:0":        "[::1]:0",
	} {
		var got httpAddress
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %q, want %q: %v", text, got, want, err)
		}
	}
	for _, text := range []string{"", "localhost", "::1", "host:name", "65536", "-1", ":http", "127.0.0.1:"} {
		runCommand(t, exitUsage, "run", "--http="+text)
	}
}

func TestHTTPAddressInUse(t *testing.T) {
	t.Parallel()
	database, _ := newCounted(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if stderr := runFailing(t, "run", "--http="+port, database); !strings.Contains(stderr, "serve HTTP: listen tcp 127.0.0.1:"+port) {
		t.Errorf("standard error: %s", stderr)
	}
}

// A server that fails ends what runs beside it.
func TestServingFails(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	err = serveWhile(t.Context(), listener, http.NotFoundHandler(), slog.New(slog.DiscardHandler), func(ctx context.Context) error {
		listener.Close()
		<-ctx.Done()
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "serve HTTP: accept") {
		t.Errorf("error %v", err)
	}
}
