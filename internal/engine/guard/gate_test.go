// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// create reads ConfigMaps and creates one.
func create(w *world, name string) func(ctx context.Context, c client.Client) {
	return func(ctx context.Context, c client.Client) {
		w.must(c.List(ctx, &corev1.ConfigMapList{}))
		w.must(c.Create(ctx, configMap(name)))
	}
}

// deferred repeats a request each time its wait is over, and returns how often and how long it was deferred.
func deferred(w *world, do func(ctx context.Context, c client.Client)) (waits int, waited time.Duration, live bool) {
	begin := time.Now()
	for {
		wait, live := w.reconcile(do)
		if wait == 0 {
			return waits, time.Since(begin), live
		}
		waits++
		time.Sleep(wait)
	}
}

func TestGate_FailsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.reconcile(create(w, "new"))
		seen := 0
		waits, waited, live := deferred(w, func(ctx context.Context, c client.Client) {
			list := &corev1.ConfigMapList{}
			w.must(c.List(ctx, list))
			seen = len(list.Items)
			w.must(c.Get(ctx, client.ObjectKeyFromObject(configMap("new")), &corev1.ConfigMap{}))
		})
		if waited != DefaultTimeout || !live || seen != 1 {
			t.Errorf("waited %v, read live %v, saw %d; want %v, true, 1", waited, live, seen, DefaultTimeout)
		}
		if waits > 40 {
			t.Errorf("the request was repeated %d times", waits)
		}
		if w.timeouts != 1 {
			t.Errorf("got %d timeouts, want 1", w.timeouts)
		}
		if _, live := w.reconcile(nil); live || w.kept() > 0 {
			t.Errorf("the request after it reads live: %v, journals kept: %d", live, w.kept())
		}
	})
}

func TestGate_ObjectsThatNeverAppear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.reconcile(create(w, "passing"))
		w.must(w.server.Delete(t.Context(), configMap("passing")))
		if _, waited, live := deferred(w, nil); waited < missingTimeout || waited > 2*missingTimeout || live {
			t.Errorf("for an object that another client deleted: waited %v, read live: %v", waited, live)
		}

		w.omitted["out"], w.omitted["out-too"] = true, true
		// No event of the kind updates the resource version of the cache.
		w.reportsVersion = false
		w.reconcile(create(w, "out"))
		w.catchUp()
		if _, waited, _ := deferred(w, nil); waited != DefaultTimeout {
			t.Errorf("for an object that the cache omits: waited %v, want %v", waited, DefaultTimeout)
		}
		w.reconcile(create(w, "out-too"))
		w.catchUp()
		if _, waited, _ := deferred(w, nil); waited < missingTimeout || waited > 2*missingTimeout {
			t.Errorf("for another object that the cache omits: waited %v, want about %v", waited, missingTimeout)
		}
		w.reconcile(create(w, "in"))
		if wait, _ := w.reconcile(nil); wait == 0 {
			t.Error("it must wait for an object of a kind that the cache contains partly")
		}
	})
}

// A request that waits for the cache of a kind runs when the kind is no longer served, and not after the timeout.
func TestGate_KindThatIsNoLongerServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, reportsVersion := range map[string]bool{"with a version": true, "without": false} {
			w := newWorld(t)
			w.reportsVersion = reportsVersion
			w.reconcile(create(w, "new"))
			if wait, _ := w.reconcile(nil); wait == 0 {
				t.Errorf("%s: the request does not wait for the cache", name)
			}
			w.unserved = true
			if wait, live := w.reconcile(nil); wait > 0 || live || w.timeouts > 0 || w.kept() > 0 {
				t.Errorf("%s: deferred for %v, read live: %v, %d timeouts, %d journals kept",
					name, wait, live, w.timeouts, w.kept())
			}
			if w.live.gets > 0 {
				t.Errorf("%s: %d requests to the API server", name, w.live.gets)
			}
		}
	})
}

// For a hot loop, a kind that is no longer served is a change by another client.
func TestVersions_KindThatIsNoLongerServed(t *testing.T) {
	w := newWorld(t, configMap("it"))
	journal := &Journal{}
	journal.Inspect()
	ctx := context.WithValue(t.Context(), journalKey{}, journal)
	w.must(w.cluster.Client().Get(ctx, client.ObjectKeyFromObject(configMap("it")), &corev1.ConfigMap{}))
	none := func(Object) bool { return false }
	if journal.Reads().Changed(t.Context(), none) {
		t.Error("something has changed before the kind is removed")
	}
	w.unserved = true
	if !journal.Reads().Changed(t.Context(), none) {
		t.Error("nothing has changed after the kind was removed")
	}
}

func TestGate_OutcomeUnknown(t *testing.T) {
	gr := schema.GroupResource{Resource: "configmaps"}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for name, tc := range map[string]struct {
		err  error
		live bool
	}{
		"timeout":             {apierrs.NewTimeoutError("test", 1), true},
		"server timeout":      {apierrs.NewServerTimeout(gr, "create", 1), true},
		"internal error":      {apierrs.NewInternalError(errors.New("test")), true},
		"unavailable":         {apierrs.NewServiceUnavailable("test"), true},
		"reset":               {&url.Error{Op: "Post", URL: "https://test", Err: reset}, true},
		"network":             {fmt.Errorf("wrapped: %w", reset), true},
		"end of file":         {&url.Error{Op: "Post", URL: "https://test", Err: io.EOF}, true},
		"incomplete response": {io.ErrUnexpectedEOF, true},
		"deadline":            {context.DeadlineExceeded, true},
		"canceled":            {context.Canceled, true},
		"refused connections": {
			&url.Error{Op: "Post", URL: "https://test", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, false,
		},
		"conflict":          {apierrs.NewConflict(gr, "test", errors.New("test")), false},
		"already exists":    {apierrs.NewAlreadyExists(gr, "test"), false},
		"not found":         {apierrs.NewNotFound(gr, "test"), false},
		"forbidden":         {apierrs.NewForbidden(gr, "test", errors.New("test")), false},
		"too many requests": {apierrs.NewTooManyRequests("test", 1), false},
		"denied":            {&apierrs.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden}}, false},
		"not sent":          {errors.New("no kind is registered"), false},
	} {
		t.Run(name, func(t *testing.T) {
			for verb, write := range map[string]func(ctx context.Context, c client.Client) error{
				"create": func(ctx context.Context, c client.Client) error { return c.Create(ctx, configMap("new")) },
				"delete": func(ctx context.Context, c client.Client) error { return c.Delete(ctx, configMap("plain")) },
			} {
				w := given(t)
				w.failure = tc.err
				w.reconcile(func(ctx context.Context, c client.Client) {
					if err := write(ctx, c); !errors.Is(err, tc.err) {
						t.Errorf("%s returns %v, want %v", verb, err, tc.err)
					}
				})
				w.failure = nil
				if wait, live := w.reconcile(nil); wait > 0 || live != tc.live {
					t.Errorf("after %s the request is deferred for %v and reads live: %v, want %v", verb, wait, live, tc.live)
				}
				if wait, live := w.reconcile(nil); wait > 0 || live {
					t.Errorf("the next request is deferred for %v and reads live: %v", wait, live)
				}
			}
		})
	}
}

func TestGate_LiveListWithAnIndexOfTheCache(t *testing.T) {
	w := given(t)
	refuse := apierrs.NewBadRequest("field label not supported")
	w.live.Reader = refusingReader{Reader: w.server, err: refuse}
	w.failure = context.DeadlineExceeded
	w.reconcile(func(ctx context.Context, c client.Client) { _ = c.Create(ctx, configMap("new")) })
	w.reconcile(func(ctx context.Context, c client.Client) {
		list := &corev1.ConfigMapList{}
		if err := c.List(ctx, list); err != nil || len(list.Items) != 3 {
			t.Errorf("list returns %d items and %v, want the 3 items of the cache", len(list.Items), err)
		}
	})
}

type refusingReader struct {
	client.Reader
	err error
}

func (r refusingReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return r.err
}

func TestGate_ForgetsRequestsThatNeverReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		leave := func(name string) {
			journal := &Journal{}
			ctx := context.WithValue(t.Context(), journalKey{}, journal)
			w.must(w.cluster.Client().Create(ctx, configMap(name)))
			w.gate.Leave(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}, journal)
		}
		for i := range 100 {
			leave(fmt.Sprintf("gone-%d", i))
		}
		if w.kept() != 100 {
			t.Fatalf("got %d journals, want 100", w.kept())
		}
		time.Sleep(2 * sweepInterval)
		leave("another")
		if w.kept() != 1 {
			t.Errorf("got %d journals, want 1", w.kept())
		}
	})
}

func TestOlder(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"1", "2", true},
		{"2", "2", false},
		{"10", "9", false},
		{"9", "10", true},
		{"", "1", false},
		{"1", "", false},
		{"not", "comparable", false},
	} {
		if got := older(tc.a, tc.b); got != tc.want {
			t.Errorf("older(%q, %q): got %v", tc.a, tc.b, got)
		}
	}
}

// A request that writes nothing pays for one check.
func BenchmarkGate_NothingPending(b *testing.B) {
	w := newWorld(b)
	journal := &Journal{}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		w.gate.Enter(ctx, request, journal, DefaultTimeout)
		w.gate.Leave(request, journal)
	}
}

// Other requests have unseen writes.
func BenchmarkGate_OthersPending(b *testing.B) {
	w := newWorld(b)
	for i := range 1000 {
		w.gate.Leave(reconcile.Request{NamespacedName: client.ObjectKey{Name: fmt.Sprint(i)}}, &Journal{uncertain: true})
	}
	journal := &Journal{}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		w.gate.Enter(ctx, request, journal, DefaultTimeout)
		w.gate.Leave(request, journal)
	}
}
