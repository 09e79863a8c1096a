// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "trueup.dev/testing"
)

// Other objects exist in each cluster. They do not interfere with a case, nor a case with them.
func TestOthersAreHidden(t *testing.T) {
	c := newCluster(t)
	others := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "others"}, Data: map[string]string{"whose": "others"},
	}
	if err := c.Create(t.Context(), others.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "own"}}
	ref := rtesting.DeleteRef{Kind: "ConfigMap", Namespace: c.Namespace, Name: "others"}
	runOnBoth(t, testCase{
		GivenObjects:  []client.Object{own},
		ExpectUpdates: []client.Object{others},
		ExpectPatches: []rtesting.PatchRef{
			{
				Kind: "ConfigMap", Namespace: c.Namespace, Name: "others", PatchType: "application/merge-patch+json",
				Patch: []byte(`{}`),
			},
		},
		ExpectDeletes:           []rtesting.DeleteRef{ref},
		ExpectDeleteCollections: []rtesting.DeleteCollectionRef{{Kind: "ConfigMap", Namespace: c.Namespace}},
	}, func(w *world) {
		key := client.ObjectKeyFromObject(others)
		var list corev1.ConfigMapList
		for what, reader := range map[string]client.Reader{"Client": w.Client, "APIReader": w.APIReader} {
			if what == "APIReader" && w.cluster == nil {
				continue
			}
			w.must(reader.List(w.ctx, &list, client.InNamespace(c.Namespace)))
			if len(list.Items) != 1 || list.Items[0].Name != "own" {
				w.Errorf("%s lists %v", what, list.Items)
			}
			if err := reader.Get(w.ctx, key, others.DeepCopy()); !apierrs.IsNotFound(err) {
				w.Errorf("%s reads others: %v", what, err)
			}
		}
		var accounts corev1.ServiceAccountList
		w.must(w.List(w.ctx, &accounts))
		if len(accounts.Items) != 0 {
			w.Errorf("listed service accounts: %v", accounts.Items)
		}
		for what, err := range map[string]error{
			"update": w.Update(w.ctx, others.DeepCopy()),
			"patch":  w.Patch(w.ctx, others.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{}`))),
			"delete": w.Delete(w.ctx, others.DeepCopy()),
		} {
			if !apierrs.IsNotFound(err) {
				w.Errorf("%s of an object of another client returns %v, want not found", what, err)
			}
		}
		w.must(w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace(c.Namespace)))
		w.must(w.List(w.ctx, &list, client.InNamespace(c.Namespace)))
		if len(list.Items) != 0 {
			w.Errorf("after a deletion of all: %v", list.Items)
		}
	})
	read := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(others), read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(others.Data, read.Data); diff != "" {
		t.Errorf("the object of others was changed (-want +got):\n%s", diff)
	}
}

// Controllers of a cluster react to a case asynchronously. Their timing must not affect its result.
func TestWritesOfOthersAreHidden(t *testing.T) {
	given := newConfigMap("given")
	given.Data = map[string]string{"a": "1"}
	updated, again := given.DeepCopy(), given.DeepCopy()
	updated.Data, again.Data = map[string]string{"a": "2"}, map[string]string{"a": "3"}
	runOnBoth(t, testCase{
		GivenObjects:  []client.Object{given},
		ExpectUpdates: []client.Object{updated, again},
		ExpectPatches: []rtesting.PatchRef{{
			Kind: "ConfigMap", Namespace: namespace, Name: "given", PatchType: "application/merge-patch+json",
			Patch: []byte(`{"metadata":{"labels":{"patched":"yes"},"resourceVersion":"1001"}}`),
		}},
		ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(given, scheme)},
	}, func(w *world) {
		interfere := func() {
			if w.cluster == nil {
				return
			}
			w.Helper()
			w.must(
				w.cluster.Patch(
					w.ctx, given.DeepCopy(),
					client.RawPatch("application/merge-patch+json", []byte(`{"data":{"others":"`+w.Name()+w.time()+`"}}`)),
				),
			)
		}
		read := newConfigMap("given")
		key := client.ObjectKeyFromObject(read)
		interfere()
		w.must(w.Get(w.ctx, key, read))
		if diff := cmp.Diff(given.Data, read.Data); diff != "" || read.ResourceVersion != "999" {
			w.Errorf("version %s, data (-want +got):\n%s", read.ResourceVersion, diff)
		}
		read.Data = updated.Data
		w.must(w.Update(w.ctx, read))
		interfere()
		read.Data = again.Data
		w.must(w.Update(w.ctx, read))
		interfere()
		base := read.DeepCopy()
		read.Labels = map[string]string{"patched": "yes"}
		w.must(w.Patch(w.ctx, read, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})))
		interfere()
		w.must(w.Delete(w.ctx, read, client.Preconditions{ResourceVersion: &read.ResourceVersion}))
	})
}

// A cache may lack an object that exists.
func TestAPIGivenObjects(t *testing.T) {
	onlyAPI, both := newConfigMap("only-api"), newConfigMap("both")
	runOnBoth(t, testCase{
		GivenObjects:    []client.Object{both},
		APIGivenObjects: []client.Object{onlyAPI, both.DeepCopy()},
	}, func(w *world) {
		for what, tt := range map[string]struct {
			reader client.Reader
			want   []string
		}{"Client": {w.Client, []string{"both"}}, "APIReader": {w.APIReader, []string{"both", "only-api"}}} {
			var list corev1.ConfigMapList
			w.must(tt.reader.List(w.ctx, &list))
			var names []string
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				w.Errorf("%s lists (-want +got):\n%s", what, diff)
			}
		}
		if err := w.Get(w.ctx, client.ObjectKeyFromObject(onlyAPI), onlyAPI.DeepCopy()); !apierrs.IsNotFound(err) {
			w.Errorf("Client reads an object that only the API has: %v", err)
		}
		w.must(w.APIReader.Get(w.ctx, client.ObjectKeyFromObject(onlyAPI), onlyAPI.DeepCopy()))
	})
}
