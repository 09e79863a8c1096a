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

func newNamespace(labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "of-a-case", Labels: labels}}
}

// The API in memory needs no namespaces, so tables do not contain them.
func TestNamespacesAreMade(t *testing.T) {
	given, created := newConfigMap("given"), newConfigMap("created")
	given.Namespace, created.Namespace = "of-given", "of-created"
	runOnBoth(t, testCase{
		GivenObjects: []client.Object{given}, ExpectCreates: []client.Object{created},
	}, func(w *world) {
		var list corev1.NamespaceList
		w.must(w.List(w.ctx, &list))
		if len(list.Items) != 0 {
			w.Errorf("namespaces are visible: %v", list.Items)
		}
		w.must(w.Create(w.ctx, created.DeepCopy()))
	})
}

// A given namespace belongs to the case, although it is kept for the next case.
func TestNamespacesOfCases(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "of-a-case", Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pod", Image: "nginx"}}},
	}
	gold := newNamespace(map[string]string{"tier": "gold"})
	silver := newNamespace(map[string]string{"tier": "silver"})
	for range 2 {
		runOnBoth(t, testCase{
			GivenObjects: []client.Object{pod, gold}, ExpectUpdates: []client.Object{silver},
		}, func(w *world) {
			var list corev1.NamespaceList
			w.must(w.List(w.ctx, &list))
			if len(list.Items) != 1 || list.Items[0].Labels["tier"] != "gold" || list.Items[0].ResourceVersion != "999" {
				w.Errorf("the namespaces are %v", list.Items)
			}
			update := silver.DeepCopy()
			update.ResourceVersion = "999"
			w.must(w.Update(w.ctx, update))
		})
		runOnBoth(t, testCase{
			ExpectCreates: []client.Object{silver, pod},
		}, func(w *world) {
			if err := w.Get(w.ctx, client.ObjectKeyFromObject(silver), silver.DeepCopy()); !apierrs.IsNotFound(err) {
				w.Errorf("before it is created: %v", err)
			}
			created := silver.DeepCopy()
			w.must(w.Create(w.ctx, created))
			if created.Labels["tier"] != "silver" || created.ResourceVersion != "1" {
				w.Errorf("created %v", created)
			}
			w.must(w.Create(w.ctx, pod.DeepCopy()))
		})
	}
}

// A case can read a namespace that exists, if the given one does not differ from it.
func TestNamespaceOfOthers(t *testing.T) {
	c := newCluster(t)
	given := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	tc := testCase{
		GivenObjects:  []client.Object{given},
		ExpectUpdates: []client.Object{given}, ExpectDeletes: []rtesting.DeleteRef{{Kind: "Namespace", Name: "kube-system"}},
	}
	tc.Run(t, scheme, doing(c, func(w *world) {
		read := &corev1.Namespace{}
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(given), read))
		if read.ResourceVersion != "999" || read.UID != "" {
			w.Errorf("version %s, uid %s", read.ResourceVersion, read.UID)
		}
		if err := w.Update(w.ctx, read); !apierrs.IsForbidden(err) {
			w.Errorf("an update returns %v, want forbidden", err)
		}
		if err := w.Delete(w.ctx, read); !apierrs.IsForbidden(err) {
			w.Errorf("a deletion returns %v, want forbidden", err)
		}
	}), c.on())
	live := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(given), live); err != nil || live.DeletionTimestamp != nil {
		t.Errorf("after the case: %v, %v", live, err)
	}
}

// A case may delete its namespace, which takes a cluster seconds.
func TestDeletedNamespace(t *testing.T) {
	c := newCluster(t)
	given := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "to-be-deleted"}}
	in := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "to-be-deleted", Name: "in"}}
	tc := testCase{
		GivenObjects:  []client.Object{given, in},
		ExpectDeletes: []rtesting.DeleteRef{{Kind: "Namespace", Name: "to-be-deleted"}},
	}
	for range 2 {
		tc.Run(t, scheme, doing(c, func(w *world) {
			w.must(w.Delete(w.ctx, given.DeepCopy()))
			read := &corev1.Namespace{}
			w.must(w.Get(w.ctx, client.ObjectKeyFromObject(given), read))
			if diff := cmp.Diff(corev1.NamespaceTerminating, read.Status.Phase); read.DeletionTimestamp == nil {
				w.Errorf("deleted at %v, phase (-want +got):\n%s", read.DeletionTimestamp, diff)
			}
		}), c.on())
		c.assertGone(t, given, in)
	}
}

// The next run cleans up after an interrupted run.
func TestInterruptedRun(t *testing.T) {
	c := newCluster(t)
	ns := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.Namespace + "-left", Labels: map[string]string{"trueup.dev/made-by": "trueup-testing"},
		},
	}
	given := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "given", Finalizers: []string{finalizer}},
	}
	created := given.DeepCopy()
	created.Name = "created"
	for _, obj := range []client.Object{ns, given, created} {
		if err := c.Create(t.Context(), obj.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
	}
	tc := testCase{GivenObjects: []client.Object{given}, ExpectCreates: []client.Object{created}}
	tc.Run(t, scheme, doing(c, func(w *world) { w.must(w.Create(w.ctx, created.DeepCopy())) }), c.on())
	c.assertGone(t, given, created)
}

// An object that controllers create in each namespace is replaced if it is given.
func TestGivenServiceAccount(t *testing.T) {
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default", Labels: map[string]string{"of": "the-case"}},
	}
	updated := account.DeepCopy()
	updated.Labels["updated"] = "yes"
	for range 2 {
		runOnBoth(t, testCase{
			GivenObjects: []client.Object{account}, ExpectUpdates: []client.Object{updated},
		}, func(w *world) {
			var list corev1.ServiceAccountList
			w.must(w.List(w.ctx, &list, client.InNamespace(namespace)))
			if len(list.Items) != 1 || list.Items[0].Labels["of"] != "the-case" {
				w.Fatalf("the accounts are %v", list.Items)
			}
			list.Items[0].Labels["updated"] = "yes"
			w.must(w.Update(w.ctx, &list.Items[0]))
		})
	}
}
