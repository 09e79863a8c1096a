// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/resource"
)

func TestCluster_conflict(t *testing.T) {
	e := newEnv(t)
	store := newStore[*MyKind](t, myKind, e.clients)
	obj := must[*MyKind](t)(store.Add(t.Context(), e.newMyKind("a")))
	if obj.UID == "" || obj.Generation != 1 {
		t.Errorf("stored %+v", obj.ObjectMeta)
	}
	first, second := obj.DeepCopy(), obj.DeepCopy()
	first.Spec.SomeInfo, second.Spec.SomeInfo = "first", "second"
	must[*MyKind](t)(store.Update(t.Context(), e.a, first))
	for name, write := range map[string]func() (*MyKind, error){
		"Update": func() (*MyKind, error) { return store.Update(t.Context(), e.a, second) },
		"Upsert": func() (*MyKind, error) { return store.Upsert(t.Context(), e.a, second) },
		"UpdateSubresource": func() (*MyKind, error) {
			return store.UpdateSubresource(t.Context(), e.a, resource.SubresourceStatus, second)
		},
	} {
		check := unchanged(t, second)
		if _, err := write(); !apierrs.IsConflict(err) {
			t.Errorf("%s: error %v, want a conflict", name, err)
		}
		check()
	}
	if got := must[*MyKind](t)(store.Get(t.Context(), e.a)); got.Spec.SomeInfo != "first" || len(got.Annotations) > 0 {
		t.Errorf("stored %+v", got)
	}
	second.ResourceVersion = ""
	if _, err := store.Update(t.Context(), e.a, second); !errors.Is(err, resource.ErrMissingResourceVersion) {
		t.Errorf("error %v", err)
	}
}

func TestCluster_status(t *testing.T) {
	e := newEnv(t)
	store := newStore[*MyKind](t, myKind, e.clients)
	size, until := new(apiresource.MustParse("1500m")), time.Unix(1e9, 0)
	obj := must[*MyKind](t)(store.Add(t.Context(), e.newMyKind("a", func(o *MyKind) {
		o.Spec.Size, o.Spec.Until, o.Status.Replicas = size, until, 7
	})))
	if obj.Status.Replicas != 0 || obj.Spec.Size.Cmp(*size) != 0 || !obj.Spec.Until.Equal(until) {
		t.Errorf("created with %+v %+v", obj.Spec, obj.Status)
	}
	obj.Spec.SomeInfo, obj.Status.LastAppliedGeneration = "not written", obj.Generation
	check := unchanged(t, obj)
	written := must[*MyKind](t)(
		store.UpdateSubresource(t.Context(), obj.GetStaticMetadata().Identifier(), resource.SubresourceStatus, obj),
	)
	check()
	if written.Spec.SomeInfo != "some" || written.Status.LastAppliedGeneration != 1 || written.Generation != 1 {
		t.Errorf("after the status: %+v %+v", written.Spec, written.Status)
	}
	written.Spec.SomeInfo, written.Status.LastAppliedGeneration = "updated", 99
	updated := must[*MyKind](t)(store.Update(t.Context(), e.a, written))
	if updated.Spec.SomeInfo != "updated" || updated.Status.LastAppliedGeneration != 1 || updated.Generation != 2 {
		t.Errorf("after the spec: %+v %+v", updated.Spec, updated.Status)
	}
	updated.Status = MyKindStatus{}
	cleared := must[*MyKind](t)(store.UpdateSubresource(t.Context(), e.a, resource.SubresourceStatus, updated))
	if diff := cmp.Diff(MyKindStatus{}, cleared.Status); diff != "" {
		t.Errorf("an empty status does not clear it (-want +got):\n%s", diff)
	}
}

func TestCluster_scale(t *testing.T) {
	e := newEnv(t)
	store := must[*resource.Store](t)(resource.NewStore(e.clients, []resource.Kind{myKind}))
	obj := must[resource.Object](t)(store.Add(t.Context(), e.newMyKind("a", func(o *MyKind) { o.Spec.Replicas = 1 })))
	kind := must[*resource.TypedStore[resource.Object]](t)(store.Kind("MyKind"))
	scale := &autoscalingv1.Scale{}
	if err := kind.Client().SubResource(string(resource.SubresourceScale)).Get(t.Context(), obj, scale); err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 5
	check := unchanged(t, scale)
	written := must[resource.Object](t)(
		store.UpdateSubresource(t.Context(), "MyKind", e.a, resource.SubresourceScale, scale),
	)
	check()
	if written.(*autoscalingv1.Scale).Spec.Replicas != 5 || written.GetResourceVersion() == scale.ResourceVersion {
		t.Errorf("scaled to %+v", written)
	}
	stored := must[resource.Object](t)(store.Get(t.Context(), "MyKind", e.a)).(*MyKind)
	if stored.Spec.Replicas != 5 || stored.Spec.SomeInfo != "some" {
		t.Errorf("stored %+v", stored.Spec)
	}
	if _, err := store.UpdateSubresource(
		t.Context(), "MyKind", e.a, resource.SubresourceScale, scale,
	); !apierrs.IsConflict(
		err,
	) {
		t.Errorf("error %v, want a conflict", err)
	}
}

func TestCluster_upsert(t *testing.T) {
	e := newEnv(t)
	store := newStore[*MyKind](t, myKind, e.clients)
	arg := e.newMyKind("a")
	defer unchanged(t, arg)()
	created := must[*MyKind](t)(store.Upsert(t.Context(), e.a, arg))
	created.Status.Replicas = 1
	withStatus := must[*MyKind](t)(store.UpdateSubresource(t.Context(), e.a, resource.SubresourceStatus, created))

	replaced := must[*MyKind](t)(
		store.Upsert(t.Context(), e.a, e.newMyKind("a", func(o *MyKind) { o.Spec.SomeInfo = "replaced" })),
	)
	if replaced.UID != created.UID || replaced.Spec.SomeInfo != "replaced" || replaced.Status.Replicas != 1 {
		t.Errorf("replaced by %+v", replaced)
	}
	if _, err := store.Upsert(t.Context(), e.a, withStatus); !apierrs.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	same := must[*MyKind](t)(store.Upsert(t.Context(), e.a, replaced))
	if same.ResourceVersion != replaced.ResourceVersion {
		t.Error("an upsert without changes wrote the object")
	}
	if err := store.Delete(t.Context(), e.a); err != nil {
		t.Fatal(err)
	}
	again := must[*MyKind](t)(store.Upsert(t.Context(), e.a, replaced))
	if again.UID == replaced.UID || again.Spec.SomeInfo != "replaced" {
		t.Errorf("an object that no longer exists was not created: %+v", again)
	}
	if _, err := store.Upsert(t.Context(), e.a, replaced); !apierrs.IsConflict(err) {
		t.Errorf("error %v, want a conflict with the object that was created", err)
	}
}

func TestCluster_list(t *testing.T) {
	e := newEnv(t)
	store := newStore[*MyKind](t, myKind, e.clients)
	want := []string{}
	for i := range 25 {
		name := fmt.Sprintf("n%02d", i)
		want = append(want, name)
		must[*MyKind](t)(
			store.Add(
				t.Context(), e.newMyKind(name, func(o *MyKind) { o.Labels = map[string]string{"odd": fmt.Sprint(i % 2)} }),
			),
		)
	}
	tests := map[string]struct {
		options resource.StoreListOptions
		want    []string
	}{
		"OnePage":   {options: resource.StoreListOptions{}, want: want},
		"ManyPages": {options: resource.StoreListOptions{PerPage: 4}, want: want},
		"ExactPage": {options: resource.StoreListOptions{PerPage: 25}, want: want},
		"ByOne":     {options: resource.StoreListOptions{PerPage: 1}, want: want},
		"Labels": {
			options: resource.StoreListOptions{PerPage: 2, LabelFilters: []string{"odd=1", "odd!=0"}},
			want:    []string{"n01", "n03", "n05", "n07", "n09", "n11", "n13", "n15", "n17", "n19", "n21", "n23"},
		},
		"Field": {options: resource.StoreListOptions{FieldSelectors: []string{"metadata.name=n07"}}, want: []string{"n07"}},
	}
	for name, tt := range tests {
		tt.options.Namespace = e.Namespace
		list := must[*resource.TypedList[*MyKind]](t)(store.List(t.Context(), tt.options))
		if diff := cmp.Diff(tt.want, names(list.Items)); diff != "" {
			t.Errorf("%s: names (-want +got):\n%s", name, diff)
		}
		if list.ResourceVersion == "" {
			t.Errorf("%s: the list has no resource version", name)
		}
	}
	if list := must[*resource.TypedList[*MyKind]](t)(
		store.List(t.Context(), resource.StoreListOptions{PerPage: 3}),
	); len(
		list.Items,
	) < 25 {
		t.Errorf("%d objects in all namespaces", len(list.Items))
	}
}

func TestCluster_clusterScope(t *testing.T) {
	e := newEnv(t)
	store := newStore[*Theme](t, theme, e.clients)
	id := resource.Identifier{Name: e.Namespace} // unique among tests
	obj := &Theme{Spec: ThemeSpec{Color: "black"}}
	created := must[*Theme](t)(store.Upsert(t.Context(), id, obj))
	created.Spec.Color = "white"
	updated := must[*Theme](t)(store.Update(t.Context(), id, created))
	if updated.Spec.Color != "white" || updated.Namespace != "" || updated.GetStaticMetadata().Identifier() != id {
		t.Errorf("stored %+v", updated)
	}
	list := must[*resource.TypedList[*Theme]](t)(
		store.List(t.Context(), resource.StoreListOptions{FieldSelectors: []string{"metadata.name=" + id.Name}}),
	)
	if len(list.Items) != 1 || list.Items[0].Spec.Color != "white" {
		t.Errorf("listed %+v", list.Items)
	}
	if err := store.Delete(t.Context(), id); err != nil {
		t.Error(err)
	}
	if _, err := store.Get(t.Context(), id); !apierrs.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestCluster_delete(t *testing.T) {
	e := newEnv(t)
	store := newStore[*MyKind](t, myKind, e.clients)
	const finalizer = group + "/test"
	obj := must[*MyKind](t)(
		store.Add(t.Context(), e.newMyKind("a", func(o *MyKind) { o.Finalizers = []string{finalizer} })),
	)
	err := store.Delete(t.Context(), e.a, client.Preconditions{UID: new(types.UID("other"))})
	if !apierrs.IsConflict(err) {
		t.Errorf("error %v: an object of another UID was deleted", err)
	}
	if err := store.Delete(t.Context(), e.a, client.Preconditions{UID: &obj.UID}); err != nil {
		t.Fatal(err)
	}
	if err := store.ForceDelete(t.Context(), e.a); err != nil {
		t.Error(err)
	}
	deleting := must[*MyKind](t)(store.Get(t.Context(), e.a))
	if deleting.DeletionTimestamp == nil || len(deleting.Finalizers) != 1 {
		t.Fatalf("the finalizer was not respected: %+v", deleting.ObjectMeta)
	}
	deleting.Finalizers = nil
	must[*MyKind](t)(store.Update(t.Context(), e.a, deleting))
	if err := store.Delete(t.Context(), e.a); !apierrs.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
	if err := store.ForceDelete(t.Context(), e.a); err != nil {
		t.Error(err)
	}
}

// The cache of a manager serves kinds without generated code, with lists of values and of pointers.
func TestCluster_cache(t *testing.T) {
	e := newEnv(t)
	cached := e.cached()
	clients := resource.NewClientGenerator(cached, e.Client)
	store, live := newStore[*MyKind](t, myKind, clients), newStore[*MyKind](t, myKind, clients, resource.Live)
	created := must[*MyKind](t)(store.Add(t.Context(), e.newMyKind("a", func(o *MyKind) { o.Spec.Tags = []string{"x"} })))
	if got := must[*MyKind](t)(live.Get(t.Context(), e.a)); got.UID != created.UID {
		t.Errorf("live read %+v", got)
	}
	e.Eventually(func() error { _, err := store.Get(t.Context(), e.a); return err })
	first, second := must[*MyKind](t)(store.Get(t.Context(), e.a)), must[*MyKind](t)(store.Get(t.Context(), e.a))
	if diff := cmp.Diff(created, first); diff != "" {
		t.Errorf("cached (-want +got):\n%s", diff)
	}
	first.Spec.Tags[0] = "changed"
	if second.Spec.Tags[0] != "x" {
		t.Error("reads of a cache share memory")
	}
	list := must[*resource.TypedList[*MyKind]](t)(
		store.List(t.Context(), resource.StoreListOptions{Namespace: e.Namespace, PerPage: 1}),
	)
	if diff := cmp.Diff([]*MyKind{created}, list.Items); diff != "" {
		t.Errorf("cached list (-want +got):\n%s", diff)
	}

	mistaken := newStore[*MyKind](t, myKind, resource.NewClientGenerator(cached, nil))
	if list, err := mistaken.List(t.Context(), resource.StoreListOptions{}); err == nil {
		t.Errorf("a cache used as the live reader must return an error, got %d objects", len(list.Items))
	}

	themes := newStore[*Theme](t, theme, clients)
	id := resource.Identifier{Name: e.Namespace}
	dark := must[*Theme](t)(themes.Upsert(t.Context(), id, &Theme{Spec: ThemeSpec{Color: "black"}}))
	t.Cleanup(func() {
		if err := e.Delete(context.Background(), dark); err != nil {
			t.Error(err)
		}
	})
	e.Eventually(func() error { _, err := themes.Get(t.Context(), id); return err })
	found := false
	for obj, err := range themes.All(t.Context(), resource.StoreListOptions{}) {
		found = found || must[*Theme](t)(obj, err).Name == id.Name
	}
	if !found {
		t.Error("the object is not in the list of the cache")
	}
}
