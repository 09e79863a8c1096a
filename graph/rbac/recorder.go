// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"maps"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/serving/apipath"
	"trueup.dev/observe"
)

// Recorder collects the permissions that requests to the Kubernetes API need, including requests that fail. One
// recorder may collect from several sources: from REST configs with [Recorder.Wrap], from the controllers of a manager
// with [Recorder.Listener], from test cases with RecordPermissions of package trueup.dev/testing, and from the runs of
// a Scenario of package trueup.dev/converge. The zero value is ready to use. Its methods are safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	used Permissions
}

// Wrap returns a transport that records requests. It is the argument of the method Wrap of a rest.Config.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return recordingTransport{r, next} }

// Used returns the permissions that were needed so far.
func (r *Recorder) Used() Permissions {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := maps.Clone(r.used)
	if used == nil {
		used = Permissions{}
	}
	return used
}

// Add adds permissions.
func (r *Recorder) Add(permissions ...Permission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used == nil {
		r.used = Permissions{}
	}
	for _, p := range permissions {
		r.used[p] = true
	}
}

// AddKind adds the permissions for verbs on a kind, or on a subresource of it. The mapper returns the plural of the
// kind. If it is nil or does not know the kind, the plural is guessed.
func (r *Recorder) AddKind(mapper meta.RESTMapper, kind schema.GroupVersionKind, subresource string, verbs ...string) {
	resource, err := resourceOf(mapper, kind, subresource)
	if err != nil {
		resource, _ = resourceOf(nil, kind, subresource)
	}
	for _, verb := range verbs {
		r.Add(Permission{Group: kind.Group, Resource: resource, Verb: verb})
	}
}

// Listener returns a listener that records the calls of observed clients. Add it to the hub of a manager:
//
//	observe.Of(mgr).Add(recorder.Listener(mgr.GetRESTMapper()))
//
// A read from a cache needs the permissions of the cache: list and watch. Requests of caches for kinds that controllers
// watch and do not read are not recorded, and neither are events and leader election. [Recorder.Wrap] records all of
// these.
func (r *Recorder) Listener(mapper meta.RESTMapper) observe.Listener {
	return &listener{recorder: r, mapper: mapper, seen: map[seenCall]bool{}}
}

// listener records each kind of call once: the mapper may be slow.
type listener struct {
	recorder *Recorder
	mapper   meta.RESTMapper

	mu   sync.RWMutex
	seen map[seenCall]bool
}

type seenCall struct {
	kind              schema.GroupVersionKind
	verb, subresource string
	cached            bool
}

// Observe implements [observe.Listener].
func (l *listener) Observe(ctx context.Context, event observe.Event) context.Context {
	call, ok := event.(*observe.Call)
	if !ok || call.Kind.Empty() {
		return ctx
	}
	key := seenCall{kind: call.Kind, verb: call.Verb, subresource: call.Subresource, cached: call.Cached}
	l.mu.RLock()
	seen := l.seen[key]
	l.mu.RUnlock()
	if seen {
		return ctx
	}
	verbs := []string{call.Verb}
	if call.Cached {
		verbs = CacheVerbs()
	}
	l.recorder.AddKind(l.mapper, call.Kind, call.Subresource, verbs...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[key] = true
	return ctx
}

// CacheVerbs returns the verbs that a cache of a kind needs.
func CacheVerbs() []string { return []string{"list", "watch"} }

type recordingTransport struct {
	recorder *Recorder
	next     http.RoundTripper
}

func (t recordingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if r, ok := apipath.Parse(request); ok && r.Verb != "" {
		t.recorder.Add(Permission{Group: r.Group, Resource: r.FullResource(), Verb: r.Verb})
	}
	return t.next.RoundTrip(request)
}
