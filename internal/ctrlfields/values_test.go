// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/offline"
	"trueup.dev/internal/testkit/await"
)

// generation is a predicate that can be compared.
type generation struct {
	predicate.GenerationChangedPredicate
}

var (
	podKind  = corev1.SchemeGroupVersion.WithKind("Pod")
	nodeKind = corev1.SchemeGroupVersion.WithKind("Node")
	self     = &handler.EnqueueRequestForObject{}
	comparer = cmp.AllowUnexported(handler.EnqueueRequestForObject{}, predicate.GenerationChangedPredicate{})
)

func newCache(t *testing.T, options cache.Options) cache.Cache {
	t.Helper()
	options.Scheme, options.Mapper = clientgoscheme.Scheme, offline.NewMapper(clientgoscheme.Scheme)
	made, err := cache.New((&offline.Cluster{}).GetConfig(), options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newClient(t *testing.T, options client.Options) client.Client {
	t.Helper()
	options.Scheme, options.Mapper = clientgoscheme.Scheme, offline.NewMapper(clientgoscheme.Scheme)
	made, err := client.New((&offline.Cluster{}).GetConfig(), options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestInputsOfBuilder(t *testing.T) {
	filter := builder.WithPredicates(generation{})
	raw := source.Kind[client.Object](nil, &corev1.Pod{}, self)
	bldr := builder.ControllerManagedBy(&offline.Manager{}).
		For(&corev1.Pod{}, filter).
		Owns(&corev1.Node{}, builder.OnlyMetadata, builder.MatchEveryOwner).
		Owns(&corev1.Secret{}, filter).
		Watches(&corev1.ConfigMap{}, self, filter, builder.OnlyMetadata).
		WatchesRawSource(raw).
		WithEventFilter(generation{})
	filters := []predicate.Predicate{generation{}}

	own, ok := ForInput(bldr)
	if diff := cmp.Diff(Input{Object: &corev1.Pod{}, Predicates: filters}, own, comparer); !ok || diff != "" {
		t.Errorf("ok %t, For (-want +got):\n%s", ok, diff)
	}
	owned, ok := OwnsInputs(bldr)
	if diff := cmp.Diff([]Input{
		{Object: &corev1.Node{}, MetadataOnly: true, MatchEveryOwner: true}, {Object: &corev1.Secret{}, Predicates: filters},
	}, owned, comparer); !ok || diff != "" {
		t.Errorf("ok %t, Owns (-want +got):\n%s", ok, diff)
	}
	watched, ok := WatchesInputs(bldr)
	if diff := cmp.Diff([]Input{
		{Object: &corev1.ConfigMap{}, Predicates: filters, MetadataOnly: true, Handler: self},
	}, watched, comparer); !ok || diff != "" {
		t.Errorf("ok %t, Watches (-want +got):\n%s", ok, diff)
	}
	if sources, ok := RawSources(bldr); !ok || len(sources) != 1 || sources[0] != raw {
		t.Errorf("ok %t, raw sources %v", ok, sources)
	}
	global, ok := GlobalPredicates(bldr)
	if diff := cmp.Diff(filters, global, comparer); !ok || diff != "" {
		t.Errorf("ok %t, predicates (-want +got):\n%s", ok, diff)
	}

	empty := builder.ControllerManagedBy(&offline.Manager{})
	if own, ok := ForInput(empty); !ok || own.Object != nil {
		t.Errorf("ok %t, For of an empty builder %v", ok, own)
	}
}

func TestWrapNewController(t *testing.T) {
	bldr := builder.ControllerManagedBy(&offline.Manager{Cluster: offline.Cluster{Scheme: clientgoscheme.Scheme}}).
		For(&corev1.Pod{})
	want := errors.New("called")
	if !WrapNewController(bldr, func(create NewController) NewController {
		return func(name string, mgr manager.Manager, options controller.Options) (controller.Controller, error) {
			if made, err := create(name, mgr, options); made == nil || err != nil {
				t.Errorf("the default made the controller %v, error %v", made, err)
			}
			return nil, want
		}
	}) {
		t.Fatal("controller-runtime has changed")
	}
	if err := bldr.Complete(never); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestKindOf(t *testing.T) {
	informers := newCache(t, cache.Options{})
	typed := &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}
	for name, tc := range map[string]struct {
		src    any
		want   Kind
		wantOK bool
	}{
		"of objects": {
			source.Kind[client.Object](informers, &corev1.Pod{}, self, generation{}),
			Kind{Object: &corev1.Pod{}, Cache: informers, Handler: self, Predicates: []predicate.Predicate{generation{}}},
			true,
		},
		"of a Go type": {
			source.Kind(informers, &corev1.Pod{}, typed),
			Kind{Object: &corev1.Pod{}, Cache: informers, Handler: typed, TypedPredicates: true},
			true,
		},
		"another source": {&source.Informer{Handler: self}, Kind{}, false},
		"a function":     {source.Func(nil), Kind{}, false},
		"nil":            {nil, Kind{}, false},
	} {
		got, ok := KindOf(tc.src)
		if ok != tc.wantOK {
			t.Errorf("%s: ok %t, want %t", name, ok, tc.wantOK)
		}
		identical := cmp.Comparer(func(a, b cache.Cache) bool { return a == b })
		if diff := cmp.Diff(tc.want, got, comparer, identical, cmpopts.EquateComparable(typed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWithHandler(t *testing.T) {
	replacement, typed := &handler.Funcs{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}
	for name, tc := range map[string]struct {
		src  source.Source
		want bool
	}{
		"a kind":               {source.Kind[client.Object](nil, &corev1.Pod{}, self), true},
		"an informer":          {&source.Informer{Handler: self}, true},
		"a kind of a Go type":  {source.Kind(nil, &corev1.Pod{}, typed), false},
		"a source of requests": {source.Func(nil), false},
		"without a handler":    {&source.Informer{}, false},
	} {
		var original handler.EventHandler
		got, ok := WithHandler(tc.src, func(h handler.EventHandler) handler.EventHandler {
			original = h
			return replacement
		})
		if ok != tc.want {
			t.Fatalf("%s: ok %t, want %t", name, ok, tc.want)
		}
		if !ok {
			continue
		}
		if original != handler.EventHandler(self) {
			t.Errorf("%s: the original handler is %v", name, original)
		}
		now, _ := structOf(got)
		before, _ := structOf(tc.src)
		for of, want := range map[string][2]any{
			"copy":   {now.FieldByName("Handler").Interface(), replacement},
			"source": {before.FieldByName("Handler").Interface(), self},
		} {
			if want[0] != want[1] {
				t.Errorf("%s: the handler of the %s is %v, want %v", name, of, want[0], want[1])
			}
		}
	}
}

// partly are options of a cache with namespaces for some kinds.
var partly = cache.Options{
	DefaultNamespaces: map[string]cache.Config{"b": {}, "a": {}},
	ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}:    {Namespaces: map[string]cache.Config{"c": {}}},
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}},
	},
}

func TestNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		cache cache.Cache
		kind  schema.GroupVersionKind
		want  []string
	}{
		"all":                    {newCache(t, cache.Options{}), podKind, []string{""}},
		"namespaces of the kind": {newCache(t, partly), podKind, []string{"c"}},
		"default namespaces":     {newCache(t, partly), nodeKind, []string{"a", "b"}},
		"all of the kind":        {newCache(t, partly), corev1.SchemeGroupVersion.WithKind("Secret"), []string{""}},
		"another cache":          {struct{ cache.Cache }{newCache(t, partly)}, podKind, []string{""}},
		"no cache":               {nil, podKind, []string{""}},
	} {
		if diff := cmp.Diff(tc.want, Namespaces(tc.cache, tc.kind)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestStartedInformers(t *testing.T) {
	if got := StartedInformers(nil); got != nil {
		t.Errorf("no cache: got %v", got)
	}
	for name, tc := range map[string]struct {
		options cache.Options
		want    []schema.GroupVersionKind
	}{
		"one cache": {cache.Options{}, []schema.GroupVersionKind{nodeKind, podKind}},
		// A node is in the part for cluster-scoped objects, or in each part if the mapper does not say that it is one.
		"parts": {partly, []schema.GroupVersionKind{nodeKind, podKind}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			informers := newCache(t, tc.options)
			for _, obj := range []client.Object{&corev1.Pod{}, &corev1.Node{}} {
				if _, err := informers.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
					t.Fatal(err)
				}
			}
			if got := StartedInformers(informers); len(got) > 0 {
				t.Errorf("before the start: %v", got)
			}
			ended := make(chan error, 1)
			go func() { ended <- informers.Start(ctx) }()
			await.Nil(t, 30*time.Second, func() error {
				kinds := map[schema.GroupVersionKind]bool{}
				for _, informer := range StartedInformers(informers) {
					kinds[informer.Kind] = true
					if informer.HasSynced() {
						t.Errorf("the informer of %v is filled, without an API server", informer.Kind)
					}
				}
				for _, kind := range tc.want {
					if !kinds[kind] {
						return errors.New("not started: " + kind.Kind)
					}
				}
				return nil
			})
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCacheOptions(t *testing.T) {
	informers := newCache(t, cache.Options{})
	type another struct {
		client.Client
		cache client.Reader
	}
	for name, tc := range map[string]struct {
		client       client.Client
		cache        client.Reader
		uncached     map[schema.GroupVersionKind]struct{}
		unstructured bool
	}{
		"live":    {newClient(t, client.Options{}), nil, nil, false},
		"default": {newClient(t, client.Options{Cache: &client.CacheOptions{Reader: informers}}), informers, nil, false},
		"all options": {newClient(t, client.Options{Cache: &client.CacheOptions{
			Reader: informers, Unstructured: true, DisableFor: []client.Object{&corev1.Pod{}},
		}}), informers, map[schema.GroupVersionKind]struct{}{podKind: {}}, true},
		"another client": {&another{cache: informers}, nil, nil, false},
		"no client":      {nil, nil, nil, false},
	} {
		if got := CacheOf(tc.client); got != tc.cache {
			t.Errorf("%s: reads from %v, want %v", name, got, tc.cache)
		}
		uncached, unstructured := CacheOptions(tc.client)
		if diff := cmp.Diff(tc.uncached, uncached, cmpopts.EquateEmpty()); diff != "" || unstructured != tc.unstructured {
			t.Errorf("%s: unstructured %t, uncached (-want +got):\n%s", name, unstructured, diff)
		}
	}
}
