// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// countingClient counts the objects in the lists that it returns.
type countingClient struct {
	client.Client
	listed *atomic.Int64
}

func (c countingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	c.listed.Add(int64(meta.LenList(list)))
	return err
}

// A parent reads only its own children, however many children others have. In a cache for all namespaces, the index is
// one of buckets.
func TestChildrenAreFoundByTheirOwner(t *testing.T) {
	for name, everywhere := range map[string]bool{"in a cache of namespaces": false, "in a cache of all": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			options := ctrl.Options{}
			if everywhere {
				options.Cache = cachingAll(e)
			}
			caches := childrenAreFoundByTheirOwner(t, e, options)
			informer, err := caches.GetInformer(t.Context(), &corev1.ConfigMap{})
			if err != nil {
				t.Fatal(err)
			}
			indexed, single := informer.(interface{ GetIndexer() toolscache.Indexer })
			if single != everywhere {
				t.Fatalf("the informer is of type %T", informer)
			}
			if single {
				isOfBuckets(t, indexed.GetIndexer(), e.Namespace)
			}
		})
	}
}

// cachingAll caches all namespaces, but only the resources of the test.
func cachingAll(e *env) cache.Options {
	return cache.Options{
		DefaultNamespaces: map[string]cache.Config{},
		ByObject: map[client.Object]cache.ByObject{
			&fixture.Resource{}: {Namespaces: map[string]cache.Config{e.Namespace: {}}},
		},
	}
}

func childrenAreFoundByTheirOwner(t *testing.T, e *env, options ctrl.Options) (caches cache.Cache) {
	t.Helper()
	const siblings = 300
	other := newConfigMap("owner-of-the-others", nil)
	e.Add(other)
	resource := newResource("it", nil)
	e.Add(resource)
	for i := range siblings {
		sibling := newConfigMap(fmt.Sprintf("sibling-%03d", i), nil)
		sibling.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		}
		e.Add(sibling)
	}

	var passes, listed atomic.Int64
	child := configMapOf("-child", func(*fixture.Resource) map[string]string { return nil })
	child.ReflectChildStatusOnParent = func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) { passes.Add(1) }
	e.Manager(e.RESTConfig(), options, func(ctx context.Context, mgr ctrl.Manager) error {
		caches = mgr.GetCache()
		c := reconcilers.NewConfig(mgr, nil, time.Hour)
		c.Client = countingClient{Client: c.Client, listed: &listed}
		return root(child)(ctx, mgr, c)
	})
	e.Eventually(func() error { return e.Read(newConfigMap("it-child", nil)) })
	for range 5 {
		before := passes.Load()
		e.touch(resource)
		e.Eventually(func() error {
			if passes.Load() == before {
				return fmt.Errorf("no reconcile for a change of the resource")
			}
			return nil
		})
	}
	if passes, listed := passes.Load(), listed.Load(); listed == 0 || listed > passes {
		t.Errorf("%d objects were listed in %d reconciles, want at most one in each", listed, passes)
	}
	return caches
}

func isOfBuckets(t *testing.T, indexer toolscache.Indexer, namespace string) {
	t.Helper()
	const byOwner = "trueup.dev/controller-uid"
	if indexer.GetIndexers()["field:"+byOwner] != nil {
		t.Error("there is an index with two entries for each child")
	}
	siblings, own := 0, 0
	for _, bucket := range indexer.ListIndexFuncValues(byOwner) {
		keys, err := indexer.IndexKeys(byOwner, bucket)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			switch {
			case strings.HasPrefix(key, namespace+"/sibling-"):
				siblings++
			case key == namespace+"/it-child":
				own++
			}
		}
	}
	if siblings != 300 || own != 1 {
		t.Errorf("the index has %d siblings and %d children of the resource, want 300 and 1", siblings, own)
	}
}

// A kind that the client of the manager reads from the API server is not read from the index.
func TestChildrenThatAreNotReadFromTheCache(t *testing.T) {
	e := newEnv(t)
	resource := newResource("it", nil)
	e.Add(resource)
	var live atomic.Int64
	child := configMapOf("-child", func(*fixture.Resource) map[string]string { return nil })
	cfg := e.RESTConfig()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Get("watch") == "" &&
				strings.Contains(r.URL.Path, e.Namespace) {
				live.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	options := ctrl.Options{Cache: cachingAll(e)}
	options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}
	e.Manager(cfg, options, func(ctx context.Context, mgr ctrl.Manager) error {
		return root(child)(ctx, mgr, reconcilers.NewConfig(mgr, nil, time.Hour))
	})
	e.Eventually(func() error {
		if live.Load() < 2 {
			return fmt.Errorf("%d lists of ConfigMaps were sent to the API server", live.Load())
		}
		return e.Read(newConfigMap("it-child", nil))
	})
}

// Controllers whose children are of a kind that is not served yet start when the kind is served.
func TestChildrenOfAKindThatIsServedLater(t *testing.T) {
	e := newEnv(t)
	type object = *unstructured.Unstructured
	late := schema.GroupVersionKind{Group: "late.trueup.dev", Version: "v1", Kind: "Late"}
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		for n := range 2 { // two controllers of one kind
			r := &reconcilers.ResourceReconciler[*fixture.Resource]{
				Name: fmt.Sprintf("children-of-a-late-kind-%d", n),
				Reconciler: &reconcilers.ChildReconciler[*fixture.Resource, object, *unstructured.UnstructuredList]{
					ChildType: newUnstructured(late, ""), ChildListType: newUnstructuredList(late),
					OurChild: func(parent *fixture.Resource, child object) bool {
						return child.GetName() == fmt.Sprintf("%s-%d", parent.Name, n)
					},
					DesiredChild: func(_ context.Context, parent *fixture.Resource) (object, error) {
						child := newUnstructured(late, fmt.Sprintf("%s-%d", parent.Name, n))
						child.SetNamespace(parent.Namespace)
						return child, nil
					},
					MergeBeforeUpdate:          func(_, _ object) {},
					ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, object, error) {},
				},
				Config: c,
			}
			if err := r.SetupWithManager(ctx, mgr); err != nil {
				return err
			}
		}
		return nil
	})
	resource := newResource("it", nil)
	e.Add(resource)
	e.Eventually(func() error {
		if apitest.Counted(t, "trueup_owner_index_failures_total", map[string]string{"kind": late.Kind}) == 0 {
			return errors.New("the controller did not wait for the kind")
		}
		return nil
	})
	scheme := runtime.NewScheme()
	e.Must(apiextensionsv1.AddToScheme(scheme))
	definitions, err := client.New(e.RESTConfig(), client.Options{Scheme: scheme})
	e.Must(err)
	e.Must(definitions.Create(t.Context(), crd(late, "lates")))
	e.Cleanup(func() { e.Must(definitions.Delete(context.Background(), crd(late, "lates"))) })
	for n := range 2 {
		e.Eventually(func() error { return e.Read(newUnstructured(late, fmt.Sprintf("it-%d", n))) })
	}
}
