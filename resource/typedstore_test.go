// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/resource"
)

var ignoreVersion = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")

// generator fails as it is told.
type generator struct {
	client    client.Client
	err, live error
}

func (g generator) ClientFor(resource.Kind) (resource.Client, error)   { return g.client, g.err }
func (g generator) LiveReaderFor(resource.Kind) (client.Reader, error) { return g.client, g.live }

func TestNewTypedStore(t *testing.T) {
	cluster := newCluster(t, interceptor.Funcs{})
	foreign := fake.NewClientBuilder().Build()
	errTest := errors.New("failure of the test")
	tests := map[string]struct {
		reason  string
		clients resource.ClientGenerator
		opts    []resource.StoreOption
		want    []string
	}{
		"Valid":       {reason: "there is nothing wrong", clients: resource.NewClientGenerator(cluster, nil)},
		"NoGenerator": {reason: "there must be clients", want: []string{"the store of kind " + myKind.String() + " must have a ClientGenerator"}},
		"NoClient":    {reason: "there must be a client", clients: resource.NewClientGenerator(nil, nil), want: []string{"the client generator has no client"}},
		"ClientFails": {reason: "errors are passed on", clients: generator{err: errTest}, want: []string{"failure of the test"}},
		"ReaderFails": {reason: "errors are passed on", clients: generator{client: cluster, live: errTest}, want: []string{"failure of the test"}},
		"Source": {
			reason: "reads need a source", clients: resource.NewClientGenerator(cluster, nil), opts: []resource.StoreOption{resource.ReadSource("Oracle")},
			want: []string{`invalid ReadSource "Oracle": must be one of ["Cached" "Live"]`},
		},
		"UnknownType": {
			reason: "the scheme must know objects and lists", clients: resource.NewClientGenerator(foreign, nil),
			want: []string{"the client does not know kind " + myKind.String(), "the client does not know the list of kind " + myKind.String()},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store, err := resource.NewTypedStore[*MyKind](myKind, tt.clients, tt.opts...)
			if (err == nil) != (len(tt.want) == 0) || (store == nil) != (err != nil) {
				t.Fatalf("%s: store %v, error %v", tt.reason, store, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: want %q in %v", tt.reason, want, err)
				}
			}
		})
	}
	t.Run("OtherType", func(t *testing.T) {
		_, err := resource.NewTypedStore[*Theme](myKind, resource.NewClientGenerator(cluster, nil))
		if err == nil || !strings.Contains(err.Error(), "cannot be one of *resource.TypedSpecObject[") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("OtherKind", func(t *testing.T) {
		kind := resource.Kind{Schema: resource.NewSimpleSchema(group, "v2", &MyKind{}, &MyKindList{}, resource.WithKind("MyKind"))}
		_, err := resource.NewTypedStore[*MyKind](kind, resource.NewClientGenerator(cluster, nil))
		if err == nil || strings.Count(err.Error(), "not as") != 2 {
			t.Errorf("error %v", err)
		}
	})
}

// drop returns the error of a call.
func drop[T any](_ T, err error) error { return err }

// Every verb refuses what cannot be right, before the API is asked.
func TestTypedStore_refuses(t *testing.T) {
	forbidden := errors.New("the API was asked")
	cluster := newCluster(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return forbidden },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return forbidden },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return forbidden
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return forbidden
		},
	})
	clients := resource.NewClientGenerator(cluster, nil)
	mine, themes := newStore[*MyKind](t, myKind, clients), newStore[*Theme](t, theme, clients)
	anything := newStore[resource.Object](t, myKind, clients)
	ctx := t.Context()
	read := func(change ...func(*MyKind)) *MyKind {
		return newMyKind("a", append(change, func(o *MyKind) { o.ResourceVersion = "1" })...)
	}
	clusterID := resource.Identifier{Name: "dark"}
	tests := map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"GetNothing": {
			"both are missing", drop(mine.Get(ctx, resource.Identifier{})),
			[]string{"get MyKind", "the name is missing", "the namespace is missing"},
		},
		"GetNamespaced": {"there are no namespaces", drop(themes.Get(ctx, id("dark"))), []string{`get Theme "ns/dark"`, `there must be none, not "ns"`}},
		"DeleteNothing": {
			"both are missing", mine.Delete(ctx, resource.Identifier{}),
			[]string{"delete MyKind", "the name is missing", "the namespace is missing"},
		},
		"ForceDelete":  {"the namespace is missing", mine.ForceDelete(ctx, clusterID), []string{"the namespace is missing"}},
		"PatchNothing": {"both are missing", drop(mine.Patch(ctx, resource.Identifier{}, "", nil)), []string{"patch MyKind", "the name is missing"}},
		"AddNil":       {"there is no object", drop(mine.Add(ctx, nil)), []string{"add MyKind", "the object is nil"}},
		"AddUnnamed":   {"there is no name", drop(mine.Add(ctx, newMyKind(""))), []string{"the name is missing"}},
		"AddNamespace": {
			"there is no namespace", drop(mine.Add(ctx, newMyKind("a", func(o *MyKind) { o.Namespace = "" }))),
			[]string{"the namespace is missing"},
		},
		"UpdateNil": {"there is no object", drop(mine.Update(ctx, id("a"), nil)), []string{`update MyKind "ns/a"`, "the object is nil"}},
		"UpdateOther": {
			"name and namespace differ", drop(mine.Update(ctx, resource.Identifier{Namespace: "x", Name: "b"}, read())),
			[]string{`name is "a"`, `namespace is "ns"`},
		},
		"UpdateVersion": {"it was not read", drop(mine.Update(ctx, id("a"), newMyKind("a"))), []string{resource.ErrMissingResourceVersion.Error()}},
		"UpsertOther":   {"the name differs", drop(mine.Upsert(ctx, id("b"), newMyKind("a"))), []string{`upsert MyKind "ns/b"`, `name is "a"`}},
		"UpsertNil":     {"there is no object", drop(mine.Upsert(ctx, id("b"), nil)), []string{"the object is nil"}},
		"StatusOther": {
			"the name differs", drop(mine.UpdateSubresource(ctx, id("b"), "status", read())),
			[]string{`update status of MyKind "ns/b"`, `name is "a"`},
		},
		"StatusVersion": {
			"it was not read", drop(mine.UpdateSubresource(ctx, id("a"), "status", newMyKind("a"))),
			[]string{resource.ErrMissingResourceVersion.Error()},
		},
		"StatusUnnamed": {"which subresource", drop(mine.UpdateSubresource(ctx, id("a"), "", read())), []string{"the name of the subresource is missing"}},
		"StatusNil":     {"there is no object", drop(mine.UpdateSubresource(ctx, id("a"), "status", nil)), []string{"the object is nil"}},
		"MergeNil":      {"there is no object", drop(mine.Merge(ctx, nil, read())), []string{"merge MyKind", "the object is nil"}},
		"MergeOther":    {"two objects", drop(mine.Merge(ctx, newMyKind("b"), read())), []string{`name is "b"`}},
		"ApplyNil":      {"there is no object", drop(mine.Apply(ctx, nil, "me")), []string{"apply MyKind", "the object is nil"}},
		"ApplyUnnamed":  {"there is no name", drop(mine.Apply(ctx, newMyKind(""), "me")), []string{"the name is missing"}},
		"WrongType":     {"the kind is another", drop(anything.Update(ctx, id("a"), &corev1.ConfigMap{})), []string{"the object is *v1.ConfigMap"}},
		"WrongKind": {
			"the object says so", drop(mine.Upsert(ctx, id("a"), read(func(o *MyKind) { o.Kind = "YourKind"; o.APIVersion = "a/v1" }))),
			[]string{"of kind a/v1, Kind=YourKind"},
		},
		"BodyOther": {
			"all is wrong", drop(anything.UpdateSubresource(ctx, id("a"), "scale", &corev1.ConfigMap{})),
			[]string{`the subresource is that of ""`, "resource version is missing"},
		},
		"ListNamespace": {
			"there are no namespaces", drop(themes.List(ctx, resource.StoreListOptions{Namespace: "ns"})),
			[]string{"list Theme", `there must be none, not "ns"`},
		},
		"ListSelectors": {
			"all is wrong", drop(themes.List(ctx, resource.StoreListOptions{LabelFilters: []string{"a in"}, FieldSelectors: []string{"a"}, PerPage: -1})),
			[]string{"invalid LabelFilters", "invalid FieldSelectors", "invalid PerPage -1"},
		},
		"ListWithoutErr": {"the API is asked", drop(themes.List(ctx, resource.StoreListOptions{})), []string{"list Theme: the API was asked"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.err == nil {
				t.Fatalf("%s: no error", tt.reason)
			}
			if errors.Is(tt.err, forbidden) && name != "ListWithoutErr" {
				t.Errorf("%s: the API was asked", tt.reason)
			}
			for _, want := range tt.want {
				if !strings.Contains(tt.err.Error(), want) {
					t.Errorf("%s: want %q in %v", tt.reason, want, tt.err)
				}
			}
		})
	}
}

func TestTypedStore_Get(t *testing.T) {
	stored := newMyKind("a", func(o *MyKind) { o.Status.Replicas = 3 })
	clients := resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}, stored), nil)

	got := must[*MyKind](t)(newStore[*MyKind](t, myKind, clients).Get(t.Context(), id("a")))
	want := newMyKind("a", func(o *MyKind) { o.Status.Replicas = 3; o.SetGroupVersionKind(myKind.GroupVersionKind()) })
	if diff := cmp.Diff(want, got, ignoreVersion); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if got.GetStaticMetadata().Identifier() != id("a") || got.GetStaticMetadata().Kind != "MyKind" {
		t.Errorf("metadata %v", got.GetStaticMetadata())
	}
	_, err := newStore[*MyKind](t, myKind, clients).Get(t.Context(), id("b"))
	if !apierrs.IsNotFound(err) || !strings.HasPrefix(err.Error(), `get MyKind "ns/b": `) {
		t.Errorf("error %v, want not found", err)
	}
	u := must[*unstructured.Unstructured](t)(newStore[*unstructured.Unstructured](t, dynamic, clients).Get(t.Context(), id("a")))
	if info, _, _ := unstructured.NestedString(u.Object, "spec", "someInfo"); info != "some" {
		t.Errorf("unstructured %v", u.Object)
	}
}

func TestTypedStore_readSource(t *testing.T) {
	cache := newCluster(t, interceptor.Funcs{}, newMyKind("a", func(o *MyKind) { o.Spec.SomeInfo = "old" }))
	live := newCluster(t, interceptor.Funcs{}, newMyKind("a", func(o *MyKind) { o.Spec.SomeInfo = "new" }))
	clients := resource.NewClientGenerator(&old{Client: live, cache: cache}, live)
	tests := map[string]struct {
		reason string
		opts   []resource.StoreOption
		from   []resource.ReadSource
		want   string
	}{
		"Default":         {reason: "reads are cached", want: "old"},
		"Live":            {reason: "one read is not", from: []resource.ReadSource{resource.Live}, want: "new"},
		"LiveStore":       {reason: "no read is", opts: []resource.StoreOption{resource.Live}, want: "new"},
		"LiveStoreCached": {reason: "one read is", opts: []resource.StoreOption{resource.Live}, from: []resource.ReadSource{resource.Cached}, want: "old"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore[*MyKind](t, myKind, clients, tt.opts...)
			if got := must[*MyKind](t)(store.Get(t.Context(), id("a"), tt.from...)); got.Spec.SomeInfo != tt.want {
				t.Errorf("%s: got the %s", tt.reason, got.Spec.SomeInfo)
			}
			options := resource.StoreListOptions{}
			for _, source := range tt.from {
				options.Source = source
			}
			list := must[*resource.TypedList[*MyKind]](t)(store.List(t.Context(), options))
			if len(list.Items) != 1 || list.Items[0].Spec.SomeInfo != tt.want {
				t.Errorf("%s: listed %+v", tt.reason, list.Items)
			}
		})
	}
	store := newStore[*MyKind](t, myKind, clients)
	if store.Kind() != myKind || store.Client() == nil {
		t.Errorf("kind %v, client %v", store.Kind(), store.Client())
	}
}
