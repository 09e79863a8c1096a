// SPDX-License-Identifier: Apache-2.0

package converge_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// named returns a ConfigMap.
func named(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}, Data: map[string]string{"key": name},
	}
}

// seen is the name of the Secret in which a copier reports what its cache has.
var seen = client.ObjectKey{Namespace: "default", Name: "seen"}

// copier keeps the names of the ConfigMaps in its cache in a Secret that users have created.
type copier struct{ client.Client }

func (r *copier) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var list corev1.ConfigMapList
	var secret corev1.Secret
	if err := r.List(ctx, &list); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.Get(ctx, seen, &secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var names []string
	for _, cm := range list.Items {
		names = append(names, cm.Name)
	}
	slices.Sort(names)
	if text := strings.Join(names, " "); string(secret.Data["names"]) != text {
		secret.Data = map[string][]byte{"names": []byte(text)}
		return reconcile.Result{}, r.Update(ctx, &secret)
	}
	return reconcile.Result{}, nil
}

// TestCacheSelectors tests that a cache has an object as long as its labels match, also after a restart and after lists
// of a watch.
func TestCacheSelectors(t *testing.T) {
	yes := map[string]string{"cached": "yes"}
	has := func(want string) converge.Step {
		return converge.Do("the cache has "+want, func(ctx context.Context, c client.Client) error {
			var secret corev1.Secret
			if err := c.Get(ctx, seen, &secret); err != nil {
				return err
			}
			if diff := cmp.Diff(want, string(secret.Data["names"])); diff != "" {
				return fmt.Errorf("cache (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	wake := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: seen}}
	}
	converge.Run(t, converge.Scenario{
		Scheme: scheme.Scheme, For: &corev1.Secret{},
		New:     func(e converge.Env) reconcile.Reconciler { return &copier{e.Client} },
		Watches: []converge.Watch{{Object: &corev1.ConfigMap{}, Requests: wake}},
		CacheSelectors: []converge.CacheSelector{{
			Object: &corev1.ConfigMap{}, Label: labels.SelectorFromSet(yes),
		}},
		Consistency: converge.TimeTravel,
		Given:       []client.Object{named("a", yes), named("b", nil)},
		Steps: converge.Steps(
			converge.Apply(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}}),
			converge.Settle(), has("a"), converge.Apply(named("b", yes)), converge.Settle(), has("a b"),
			converge.Change(named("a", nil), func(cm *corev1.ConfigMap) { cm.Labels = nil }),
			converge.Settle(), has("b"), converge.Delete(named("b", nil)), converge.Settle(), has(""),
			converge.Delete(named("a", nil)), converge.Settle(), has(""),
		),
	})
}

// TestStepsOfOtherClients tests what remains after changes of objects that a Secret controls.
func TestStepsOfOtherClients(t *testing.T) {
	owner := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	are := func(want ...string) converge.Step {
		return converge.Do("there are "+strings.Join(want, ", "), func(ctx context.Context, c client.Client) error {
			var list corev1.ConfigMapList
			if err := c.List(ctx, &list); err != nil {
				return err
			}
			var got []string
			for _, cm := range list.Items {
				text := fmt.Sprintf("%s by %s, controlled: %t, label: %q",
					cm.Name, managerOf(&cm), metav1.GetControllerOf(&cm) != nil, cm.Labels["of"])
				got = append(got, text)
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("ConfigMaps (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	converge.Run(t, converge.Scenario{
		Scheme: scheme.Scheme, For: &corev1.Secret{}, ManagedFields: true,
		New: func(converge.Env) reconcile.Reconciler {
			return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, nil
			})
		},
		Steps: converge.Steps(
			converge.Apply(owner),
			converge.CreateOwned(owner, named("a", nil), "kubectl"), converge.CreateOwned(nil, named("b", nil), "helm"),
			converge.Settle(),
			are(`a by kubectl, controlled: true, label: ""`, `b by helm, controlled: false, label: ""`),
			converge.ChangeOwned(owner, &corev1.ConfigMap{}, "label", func(cm *corev1.ConfigMap) {
				metav1.SetMetaDataLabel(&cm.ObjectMeta, "of", "x")
			}),
			converge.Settle(),
			are(`a by kubectl, controlled: true, label: "x"`, `b by helm, controlled: false, label: ""`),
			converge.Orphan(owner), converge.Settle(),
			are(`a by kubectl, controlled: false, label: "x"`, `b by helm, controlled: false, label: ""`),
		),
	})
}

func managerOf(obj client.Object) string {
	if fields := obj.GetManagedFields(); len(fields) > 0 {
		return fields[0].Manager
	}
	return "an unknown client"
}
