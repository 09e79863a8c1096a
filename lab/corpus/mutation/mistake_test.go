// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
)

// journal is a client that records its requests.
type journal struct {
	client.Client

	lines []string
}

func (j *journal) note(verb string, obj client.Object, opts ...client.DeleteOption) {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	j.lines = append(j.lines, fmt.Sprintf("%s %s owners=%d finalizers=%d labels=%d version=%t precondition=%t "+
		"propagation=%t", verb, obj.GetName(),
		len(obj.GetOwnerReferences()), len(obj.GetFinalizers()), len(obj.GetLabels()), obj.GetResourceVersion() != "",
		options.Preconditions != nil, options.PropagationPolicy != nil))
}

func (j *journal) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	j.note("create", obj)
	return j.Client.Create(ctx, obj, opts...)
}

func (j *journal) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	j.note("update", obj)
	return j.Client.Update(ctx, obj, opts...)
}

func (j *journal) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	j.note("delete", obj, opts...)
	return j.Client.Delete(ctx, obj, opts...)
}

// steps creates a config map and a secret, changes the config map, and deletes it.
func steps(ctx context.Context, c client.Client) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "a", Labels: map[string]string{"of": "a"}, Finalizers: []string{"example.com/a"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "a", UID: "1"}},
	}}
	if err := c.Create(ctx, config); err != nil {
		return err
	}
	if err := c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}); err != nil {
		return err
	}
	config.Data = map[string]string{"key": "value"}
	if err := c.Update(ctx, config); err != nil {
		return err
	}
	return c.Delete(
		ctx, config, client.Preconditions{UID: new(config.UID)}, client.PropagationPolicy(metav1.DeletePropagationBackground),
	)
}

func TestMistakes(t *testing.T) {
	const (
		create  = "create a owners=1 finalizers=1 labels=1 version=false precondition=false propagation=false"
		secret  = "create b owners=0 finalizers=0 labels=0 version=false precondition=false propagation=false"
		update  = "update a owners=1 finalizers=1 labels=1 version=true precondition=false propagation=false"
		removal = "delete a owners=1 finalizers=1 labels=1 version=true precondition=true propagation=true"
	)
	for _, test := range []struct {
		at      Site
		mistake Mistake
		want    []string
		fails   bool
	}{
		{Site{"create", "Secret"}, Drop, []string{create, update, removal}, false},
		{Site{"create", "Secret"}, Double, []string{create, secret, secret, update, removal}, false},
		{Site{"create", "Secret"}, Late, []string{create, update, secret, removal}, false},
		{Site{"delete", "ConfigMap"}, Late, []string{create, secret, update, removal}, false},
		{Site{"create", "ConfigMap"}, NoOwner, []string{
			"create a owners=0 finalizers=1 labels=1 version=false precondition=false propagation=false", secret,
			"update a owners=0 finalizers=1 labels=1 version=true precondition=false propagation=false",
			"delete a owners=0 finalizers=1 labels=1 version=true precondition=true propagation=true",
		}, false},
		{Site{"create", "ConfigMap"}, NoFinalizer, []string{
			"create a owners=1 finalizers=0 labels=1 version=false precondition=false propagation=false", secret,
			"update a owners=1 finalizers=0 labels=1 version=true precondition=false propagation=false",
			"delete a owners=1 finalizers=0 labels=1 version=true precondition=true propagation=true",
		}, false},
		{Site{"update", "ConfigMap"}, NoLabels, []string{
			create, secret, "update a owners=1 finalizers=1 labels=0 version=true precondition=false propagation=false",
			"delete a owners=1 finalizers=1 labels=0 version=true precondition=true propagation=true",
		}, false},
		{Site{"update", "ConfigMap"}, NoVersion, []string{
			create, secret, "update a owners=1 finalizers=1 labels=1 version=false precondition=false propagation=false",
			removal,
		}, false},
		{Site{"delete", "ConfigMap"}, NoPrecondition, []string{
			create, secret, update, "delete a owners=1 finalizers=1 labels=1 version=true precondition=false propagation=true",
		}, false},
		{Site{"delete", "ConfigMap"}, NoPropagation, []string{
			create, secret, update, "delete a owners=1 finalizers=1 labels=1 version=true precondition=true propagation=false",
		}, false},
		{Site{"update", "ConfigMap"}, IgnoreError, []string{create, secret, update, removal}, false},
		{Site{"create", "ConfigMap"}, Drop, []string{
			secret, "update a owners=1 finalizers=1 labels=1 version=false precondition=false propagation=false",
		}, true},
	} {
		t.Run(fmt.Sprintf("%s at %s", test.mistake, test.at), func(t *testing.T) {
			registry, err := kinds.NewRegistry(clientgoscheme.Scheme)
			if err != nil {
				t.Fatal(err)
			}
			log := &journal{Client: memapi.New(memapi.Options{Registry: registry}).Client("test")}
			m := &mutator{Site: test.at, Mistake: test.mistake, live: log.Client, effects: &effects{}}
			c := intercepted(log, m)
			_, err = reconciler(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, steps(ctx, c)
			}), m).Reconcile(t.Context(), reconcile.Request{})
			if (err != nil) != test.fails {
				t.Errorf("the last error: %v", err)
			}
			if diff := cmp.Diff(test.want, log.lines); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if wrong := test.mistake != Double && test.mistake != IgnoreError; m.effects.felt.Load() != wrong {
				t.Errorf("felt = %t, want %t", m.effects.felt.Load(), wrong)
			}
		})
	}
}

// TestIgnoreError makes an update based on an old version fail.
func TestIgnoreError(t *testing.T) {
	registry, err := kinds.NewRegistry(clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	inner := memapi.New(memapi.Options{Registry: registry}).Client("test")
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if err := inner.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	for mistake, want := range map[Mistake]string{IgnoreError: "", NoVersion: "new"} {
		old := config.DeepCopy()
		if err := inner.Patch(
			t.Context(), config,
			client.RawPatch("application/merge-patch+json", []byte(`{"data":{"key":"`+string(mistake)+`"}}`)),
		); err != nil {
			t.Fatal(err)
		}
		for _, insists := range []bool{false, true} {
			m := &mutator{
				Site: Site{"update", "ConfigMap"}, Mistake: mistake, live: inner, insists: insists, effects: &effects{},
			}
			sent := old.DeepCopy()
			sent.Data = map[string]string{"key": "new"}
			if err := intercepted(inner, m).Update(t.Context(), sent); err != nil {
				t.Errorf("%s: %v", mistake, err)
			}
			if err := inner.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
				t.Fatal(err)
			}
			if got := config.Data["key"]; want != "" && got != want || want == "" && got != string(mistake) {
				t.Errorf("%s: the value is %q", mistake, got)
			}
			if !m.effects.felt.Load() {
				t.Errorf("%s: felt = false, want true", mistake)
			}
		}
	}
}
