// SPDX-License-Identifier: Apache-2.0

// Package served finds out which kinds the API server of a cluster serves, for steps that run only while it does.
package served

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/weakmap"
)

const (
	// Interval is how often discovery is asked.
	Interval = 5 * time.Second
	// pendingInterval is how often discovery is asked while it lists a kind that the mapper does not know yet.
	pendingInterval = 250 * time.Millisecond
)

// Gate learns which of its kinds are served.
type Gate interface {
	// Served is called for each kind at each answer of discovery, by one goroutine at a time: for the kinds that are not
	// served first, then their informers are removed.
	Served(kind schema.GroupVersionKind, served bool)
}

// Cluster gives access to the cluster of a gate.
type Cluster struct {
	Cache     cache.Cache
	Client    client.Client
	Discovery discovery.DiscoveryInterface
	Log       logr.Logger
}

// member is a gate of a controller that has started.
type member struct {
	Gate
	cluster Cluster
	kinds   map[schema.GroupVersionKind]Need
}

// Need is what a gate needs a kind for.
type Need int

const (
	// ToCreate means that the kind does not count as served while its definition is being deleted.
	ToCreate Need = iota
	// ToFinalize means that it does, in all gates of the cache: finalizers must be removed from the objects.
	ToFinalize
)

// Kinds knows which of the kinds of all gates of a cache are served. The gates share its informers. Kinds refers to the
// cache only through gates.
type Kinds struct {
	// plain holds the controllers that watch a kind without a gate, by kind.
	plain sync.Map
	// known holds what is known about the kinds of the gates. It is replaced at each change, and nil without a gate.
	known atomic.Pointer[map[schema.GroupVersionKind]*state]

	// mu serializes changes.
	mu    sync.Mutex
	gates []*member
	stop  context.CancelFunc
}

// state is the last answer about a kind. Its context ends with the next other answer.
type state struct {
	served bool
	ctx    context.Context
	end    context.CancelFunc
}

var byCache weakmap.Map[byte, Kinds]

// Of returns what is known about the kinds of a cache, or nil for a cache without identity.
func Of(of cache.Cache) *Kinds {
	at := weakmap.Address(of)
	if at == nil {
		return nil
	}
	return byCache.Of(at)
}

// NewClient returns a client whose reads of kinds that are not served return an error. Without it they would wait: a
// cache creates an informer for each kind that is read, and the informer would never be filled. The client must be the
// one that reads from the cache, below all clients that read more than they are asked for.
func NewClient(reads client.Client, from cache.Cache) client.Client {
	if kinds := Of(from); kinds != nil {
		return servedClient{reads, kinds}
	}
	return reads
}

type servedClient struct {
	client.Client
	kinds *Kinds
}

func (c servedClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	do := func(ctx context.Context) error { return c.Client.Get(ctx, key, obj, opts...) }
	return c.kinds.read(ctx, c.Client, obj, do)
}

func (c servedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	do := func(ctx context.Context) error { return c.Client.List(ctx, list, opts...) }
	return c.kinds.read(ctx, c.Client, list, do)
}

// NewCache returns a cache that has no informers for kinds that are not served. The client knows the kinds of objects.
func NewCache(of cache.Cache, c client.Client) cache.Cache {
	if kinds := Of(of); kinds != nil {
		return servedCache{of, c, kinds}
	}
	return of
}

type servedCache struct {
	cache.Cache
	client client.Client
	kinds  *Kinds
}

func (c servedCache) GetInformer(
	ctx context.Context, obj client.Object, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	if gvk, kind := c.kinds.of(c.client, obj); kind != nil && !kind.served {
		return nil, unserved(gvk)
	}
	return c.Cache.GetInformer(ctx, obj, opts...)
}

func unserved(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// read reads objects like one, unless their kind is not served. A read that waits ends when the kind is no longer
// served.
func (s *Kinds) read(ctx context.Context, c client.Client, like runtime.Object, do func(context.Context) error) error {
	gvk, kind := s.of(c, like)
	switch {
	case kind == nil:
		return do(ctx)
	case !kind.served:
		return unserved(gvk)
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(kind.ctx, cancel)()
	if err := do(limited); err == nil || kind.ctx.Err() == nil || ctx.Err() != nil {
		return err
	}
	return unserved(gvk)
}

// of returns what is known about the kind of an object or of a list, or nil. It is cheap without a gate.
func (s *Kinds) of(c client.Client, obj runtime.Object) (schema.GroupVersionKind, *state) {
	known := s.known.Load()
	if known == nil {
		return schema.GroupVersionKind{}, nil
	}
	gvk, _ := c.GroupVersionKindFor(obj) // empty for an error, which is not known
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, (*known)[gvk]
}

// WatchPlainly records that a controller watches a kind without a gate: the informer of the kind is never stopped.
func (s *Kinds) WatchPlainly(gvk schema.GroupVersionKind, controller string) {
	if s != nil {
		s.plain.Store(gvk, controller)
	}
}

// Plain returns a controller that watches a kind without a gate.
func (s *Kinds) Plain(gvk schema.GroupVersionKind) (controller string, ok bool) {
	value, ok := s.plain.Load(gvk)
	controller, _ = value.(string)
	return controller, ok
}

// Join adds a gate for kinds when its controller starts, with the context of the controller.
func (s *Kinds) Join(ctx context.Context, gate Gate, kinds map[schema.GroupVersionKind]Need, cluster Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	joined := &member{gate, cluster, kinds}
	s.gates = append(s.gates, joined)
	context.AfterFunc(ctx, func() { s.leave(joined) })
	if s.stop != nil {
		s.stop() // the next one asks about the kinds of this gate at once
	}
	var running context.Context
	running, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go s.run(running, cluster)
}

func (s *Kinds) leave(left *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gates = slices.DeleteFunc(s.gates, func(other *member) bool { return other == left })
	if len(s.gates) > 0 {
		return
	}
	s.stop()
	if known := s.known.Swap(nil); known != nil {
		for _, kind := range *known {
			kind.end()
		}
	}
}

// run asks which kinds are served until ctx ends.
func (s *Kinds) run(ctx context.Context, cluster Cluster) {
	for ctx.Err() == nil {
		answers, pending := s.ask(cluster)
		s.apply(ctx, answers)
		interval := Interval
		if pending {
			interval = pendingInterval
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// ask asks which kinds are served. A kind without an answer remains as it is. Pending reports whether a kind is served
// and cannot be used yet.
func (s *Kinds) ask(cluster Cluster) (answers map[schema.GroupVersionKind]bool, pending bool) {
	answers = map[schema.GroupVersionKind]bool{}
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	for gvk, need := range s.needs() {
		list, asked := lists[gvk.GroupVersion()]
		if !asked {
			var err error
			list, err = cluster.Discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
			if err != nil && !apierrs.IsNotFound(err) {
				continue
			}
			lists[gvk.GroupVersion()] = list
		}
		if answers[gvk] = serves(list, gvk.Kind, need); !answers[gvk] {
			continue
		}
		// The informers use the mapper, and wait for ten seconds if it does not know the kind yet.
		if _, err := cluster.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			delete(answers, gvk)
			pending = true
		}
	}
	return answers, pending
}

// needs returns the kinds of all gates, with the greatest need of each.
func (s *Kinds) needs() map[schema.GroupVersionKind]Need {
	s.mu.Lock()
	defer s.mu.Unlock()
	needs := map[schema.GroupVersionKind]Need{}
	for _, g := range s.gates {
		for gvk, need := range g.kinds {
			needs[gvk] = max(needs[gvk], need)
		}
	}
	return needs
}

// serves reports whether a kind is served. A kind whose CustomResourceDefinition is being deleted can be read and
// deleted, but not created.
func serves(list *metav1.APIResourceList, kind string, need Need) bool {
	return list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == kind && !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") &&
			(need == ToFinalize || slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "delete"))
	})
}

// apply reports answers to the gates, unless ctx has ended.
func (s *Kinds) apply(ctx context.Context, answers map[schema.GroupVersionKind]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	known := s.learn(ctx, answers)
	report := func(served bool) {
		for _, g := range s.gates {
			for gvk := range g.kinds {
				if kind := known[gvk]; kind != nil && kind.served == served {
					g.Served(gvk, served)
				}
			}
		}
	}
	report(false)
	for gvk, kind := range known {
		if _, plain := s.plain.Load(gvk); !kind.served && !plain {
			s.removeInformers(ctx, gvk)
		}
	}
	report(true)
}

// learn returns what is known after some answers. The caller holds mu.
func (s *Kinds) learn(
	ctx context.Context, answers map[schema.GroupVersionKind]bool,
) (known map[schema.GroupVersionKind]*state) {
	known = map[schema.GroupVersionKind]*state{}
	if before := s.known.Load(); before != nil {
		maps.Copy(known, *before)
	}
	ended := []*state{}
	for gvk, served := range answers {
		before := known[gvk]
		if before != nil && before.served == served {
			continue
		}
		if before != nil {
			ended = append(ended, before)
		}
		now := &state{served: served}
		now.ctx, now.end = context.WithCancel(context.WithoutCancel(ctx))
		known[gvk] = now
	}
	s.known.Store(&known)
	for _, before := range ended {
		before.end()
	}
	return known
}

// removeInformers removes the informers of a kind that is not served, in each form. A read that was in flight may have
// created one since the last call.
func (s *Kinds) removeInformers(ctx context.Context, gvk schema.GroupVersionKind) {
	for _, g := range s.gates {
		if _, ok := g.kinds[gvk]; !ok {
			continue
		}
		for _, like := range []client.Object{&unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}, nil} {
			form := empty.Of(gvk, like, g.cluster.Client.Scheme())
			if form == nil {
				continue // the scheme has no type for it
			}
			form.GetObjectKind().SetGroupVersionKind(gvk) // several kinds may have the Go type
			if err := g.cluster.Cache.RemoveInformer(ctx, form); err != nil && !meta.IsNoMatchError(err) {
				g.cluster.Log.Error(err, "unable to stop an informer", "kind", gvk.String())
			}
		}
		return
	}
}
