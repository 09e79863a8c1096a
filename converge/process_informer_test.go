// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// indexReader finds the ConfigMap of a Secret in the indexer of an informer.
type indexReader struct {
	client.Client

	indexer cache.Indexer
	// live reads before a creation: then a stale cache does not lead to a second ConfigMap.
	live client.Reader
	// edits changes the object of the cache instead of a copy.
	edits bool
}

const byOwner = "owner"

func controllerOf(obj any) ([]string, error) {
	if owner := metav1.GetControllerOf(obj.(client.Object)); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

func (r *indexReader) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, req.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	data := map[string]string{"value": string(secret.Data["value"])}
	found, err := r.indexer.ByIndex(byOwner, string(secret.UID))
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(found) > 0 {
		configMap := found[0].(*corev1.ConfigMap)
		if configMap.Data["value"] == data["value"] {
			return reconcile.Result{}, nil
		}
		if !r.edits {
			configMap = configMap.DeepCopy()
		}
		configMap.Data = data
		return reconcile.Result{}, r.Update(ctx, configMap)
	}
	if r.live != nil {
		all := &corev1.ConfigMapList{}
		if err := r.live.List(ctx, all, client.InNamespace(req.Namespace)); err != nil {
			return reconcile.Result{}, err
		}
		if slices.ContainsFunc(all.Items, func(c corev1.ConfigMap) bool { return metav1.IsControlledBy(&c, secret) }) {
			return reconcile.Result{}, nil // its event comes
		}
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, GenerateName: req.Name + "-"}, Data: data,
	}
	if err := controllerutil.SetControllerReference(secret, configMap, scheme.Scheme); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Create(ctx, configMap)
}

func indexReaderScenario(live, edits bool) Scenario {
	s := controllerScenario(false)
	s.Setup = func(mgr ctrl.Manager) error {
		informer, err := mgr.GetCache().GetInformer(context.Background(), &corev1.ConfigMap{})
		if err != nil {
			return err
		}
		shared := informer.(cache.SharedIndexInformer)
		if err := shared.AddIndexers(cache.Indexers{byOwner: controllerOf}); err != nil {
			return err
		}
		r := &indexReader{Client: mgr.GetClient(), indexer: shared.GetIndexer(), edits: edits}
		if live {
			r.live = mgr.GetAPIReader()
		}
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).Complete(r)
	}
	return s
}

func TestIndexersOfInformers(t *testing.T) {
	Run(t, indexReaderScenario(true, false))
	for name, s := range map[string]Scenario{
		"the cache is stale":                indexReaderScenario(false, false),
		"an object of the cache is changed": indexReaderScenario(true, true),
	} {
		t.Run(name, func(t *testing.T) {
			report := mustCheck(t, s, DefaultOptions())
			if report.Failure == nil {
				t.Fatalf("no failure: %s", report.Certificate)
			}
			t.Log(report.Failure)
		})
	}
}

// TestStoresOfInformers reads stores in all forms during a run.
func TestStoresOfInformers(t *testing.T) {
	var checked int
	s := copierScenario(false)
	s.New = func(e Env) reconcile.Reconciler {
		inner := &copier{Client: e.Client}
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			for _, form := range []client.Object{&corev1.Secret{}, &metav1.PartialObjectMetadata{}} {
				form.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
				informer, err := e.Cache.GetInformer(ctx, form)
				if err != nil {
					return reconcile.Result{}, err
				}
				again, err := e.Cache.GetInformer(ctx, form)
				if err != nil {
					return reconcile.Result{}, err
				}
				if again != informer {
					t.Error("GetInformer returns another informer")
				}
				checkStore(t, informer.(cache.SharedIndexInformer))
				checked++
			}
			return inner.Reconcile(ctx, req)
		})
	}
	Run(t, s)
	if checked == 0 {
		t.Error("no store was read")
	}
}

func checkStore(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	store := informer.GetIndexer()
	names := func(obj any) ([]string, error) { return []string{obj.(client.Object).GetName()}, nil }
	if _, ok := store.GetIndexers()["name"]; !ok {
		if err := store.AddIndexers(cache.Indexers{"name": names}); err != nil {
			t.Error(err)
		}
	}
	if err := informer.AddIndexers(cache.Indexers{"name": names}); err == nil {
		t.Error("an index was added twice")
	}
	if store.LastStoreSyncResourceVersion() != informer.LastSyncResourceVersion() ||
		!informer.GetController().HasSynced() {
		t.Error("the informer has not synced")
	}
	if err := store.Add(&corev1.Secret{}); err == nil {
		t.Error("the cache was changed")
	}
	keys := store.ListKeys()
	if len(keys) == 0 {
		return // the Secret was deleted
	}
	obj, exists, err := store.GetByKey("default/a")
	if !exists || err != nil || keys[0] != "default/a" {
		t.Errorf("keys %q, default/a: %v, %v", keys, exists, err)
		return
	}
	if _, exists, err := store.Get(obj); !exists || err != nil {
		t.Errorf("Get: %v, %v", exists, err)
	}
	if _, exists, _ := store.GetByKey("default/b"); exists {
		t.Error("default/b exists")
	}
	same, err := store.Index("name", obj)
	if err != nil || len(same) != 1 {
		t.Errorf("Index: %v, %v", same, err)
	}
	if keys, err := store.IndexKeys("name", "b"); err != nil || len(keys) > 0 {
		t.Errorf("IndexKeys: %v, %v", keys, err)
	}
	if values := store.ListIndexFuncValues("name"); !slices.Equal(values, []string{"a"}) {
		t.Errorf("ListIndexFuncValues: %v", values)
	}
	if _, err := store.ByIndex("age", "1"); err == nil {
		t.Error("ByIndex of an unknown index returns no error")
	}
}
