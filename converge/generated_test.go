// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestGeneratedNames_replace(t *testing.T) {
	var names generatedNames
	names.learn("a-x7k2p", "a-")
	names.learn("a-x7k2p-9qwer", "a-x7k2p-")
	names.learn("disk-1", "disk-")
	names.learn("v1", "v") // too short
	for text, want := range map[string]string{
		"a-x7k2p":               "a-*",
		"a-x7k2p-config":        "a-*-config",
		"backup-of-a-x7k2p":     "backup-of-a-*",
		"default/a-x7k2p":       "default/a-*",
		"a-x7k2p.default.svc:8": "a-*.default.svc:8",
		"a-x7k2p,a-x7k2p":       "a-*,a-*",
		"a-x7k2p-9qwer":         "a-*-*",
		"a-x7k2p-9qwerty":       "a-*-9qwerty",
		"aa-x7k2p":              "aa-x7k2p",
		"a-x7k2p1":              "a-x7k2p1",
		"disk-1":                "disk-*",
		"disk-12":               "disk-12",
		"delete disk-1":         "delete disk-*",
		"v1":                    "v1",
		"":                      "",
	} {
		if got := names.replace(text); got != want {
			t.Errorf("%q is replaced by %q, want %q", text, got, want)
		}
	}
}

// TestNamesFromGeneratedNames replaces generated names in keys and values. Two names of one prefix have a number, in
// the order of their content.
func TestNamesFromGeneratedNames(t *testing.T) {
	var names generatedNames
	names.learn("a-x7k2p", "a-")
	names.learn("a-4w5tz", "a-")
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a-x7k2p-config", Labels: map[string]string{"of": "a-x7k2p"},
			Annotations: map[string]string{"example.com/a-x7k2p": "2", "example.com/a-4w5tz": "1"},
		},
		Data: map[string]string{"a-x7k2p.json": `{"name":"a-x7k2p"}`, "other": "a-x7k2pq"},
	}
	want := map[string]string{
		"metadata.labels[of]":                       `"a-*"`,
		"metadata.annotations[example.com/a-*]":     `"1"`,
		"metadata.annotations[example.com/a-* (2)]": `"2"`,
		"data[a-*.json]":                            `"{\"name\":\"a-*\"}"`,
		"data.other":                                `"a-x7k2pq"`,
	}
	p := mustPlan(t, copierScenario(false))
	s := &snapshot{generated: names}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	got := map[string]string{}
	for path, field := range p.fieldsOf(kind, configMap, s.replacer()) {
		got[path] = field.value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if got := names.thing(kind, configMap).String(); got != "ConfigMap a-*-config" {
		t.Errorf("the object is %s", got)
	}
}

// TestNamedAfterGenerated has objects that are named after those with generated names, by an actor and by the
// reconciler. After another client has deleted one, there are other names.
func TestNamedAfterGenerated(t *testing.T) {
	for name, wrong := range map[string]bool{"right": false, "wrong": true} {
		t.Run(name, func(t *testing.T) {
			s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				list := &corev1.ConfigMapList{}
				reader := e.APIReader
				if wrong {
					reader = e.Client // a stale cache leads to a second object
				}
				if err := reader.List(ctx, list, client.InNamespace(secret.Namespace)); err != nil {
					return reconcile.Result{}, err
				}
				if len(list.Items) > 0 {
					service := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
						Namespace: secret.Namespace, Name: list.Items[0].Name + "-account",
					}}
					if err := controllerutil.SetControllerReference(&list.Items[0], service, scheme.Scheme); err != nil {
						return reconcile.Result{}, err
					}
					return reconcile.Result{}, client.IgnoreAlreadyExists(e.Client.Create(ctx, service))
				}
				configMap := configMapOf(secret, true)
				configMap.Name, configMap.GenerateName = "", "a-"
				return reconcile.Result{}, e.Client.Create(ctx, configMap)
			})
			s.Steps = Lifecycle(newSecret("a"))
			s.Watches = []Watch{{
				Object: &corev1.ServiceAccount{},
				Requests: func(_ context.Context, obj client.Object) []reconcile.Request {
					return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: "a"}}}
				},
			}}
			s.World = []Actor{actorOn("templates", &corev1.ConfigMap{}, func(
				ctx context.Context, c client.Client, m *corev1.ConfigMap,
			) error {
				template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-template"}}
				template.Template.Labels = map[string]string{"of": m.Name}
				template.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
				if err := controllerutil.SetControllerReference(m, template, scheme.Scheme); err != nil {
					return err
				}
				return client.IgnoreAlreadyExists(c.Create(ctx, template))
			})}
			if wrong {
				if f := failureOf(t, s); f.Violation.Oracle != OracleDuplicates {
					t.Errorf("got %v, want a second object", f)
				}
			} else if f := foundIn(t, s); f != nil {
				t.Error(f)
			}
		})
	}
}

// TestNamesOfClouds has an external system that generates names, which a reconciler stores in a ConfigMap. A lost
// response leads to a second value, which is deleted.
func TestNamesOfClouds(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		disks, err := e.Cloud.List(ctx, "disk-")
		if err != nil {
			return reconcile.Result{}, err
		}
		if secret.DeletionTimestamp != nil {
			for _, disk := range disks {
				if err := e.Cloud.Delete(ctx, disk); err != nil && !errors.Is(err, ErrAbsent) {
					return reconcile.Result{}, err
				}
			}
			controllerutil.RemoveFinalizer(secret, "example.com/disk")
			return reconcile.Result{}, client.IgnoreNotFound(e.Client.Update(ctx, secret))
		}
		if controllerutil.AddFinalizer(secret, "example.com/disk") {
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		}
		configMap := &corev1.ConfigMap{}
		err = e.APIReader.Get(ctx, client.ObjectKeyFromObject(secret), configMap)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if err == nil {
			for _, disk := range disks {
				if disk != configMap.Data["disk"] {
					if err := e.Cloud.Delete(ctx, disk); err != nil && !errors.Is(err, ErrAbsent) {
						return reconcile.Result{}, err
					}
				}
			}
			if slices.Contains(disks, configMap.Data["disk"]) {
				return reconcile.Result{}, nil
			}
		}
		disk, err := e.Cloud.CreateNamed(ctx, "disk-", "1Gi")
		if err != nil {
			return reconcile.Result{}, err
		}
		created := configMapOf(secret, true)
		created.Data = map[string]string{"disk": disk}
		if configMap.UID != "" {
			configMap.Data = created.Data
			return reconcile.Result{}, e.Client.Update(ctx, configMap)
		}
		return reconcile.Result{}, e.Client.Create(ctx, created)
	})
	s.Off = map[Oracle]string{OracleDuplicates: "a second disk is deleted"}
	if f := foundIn(t, s); f != nil {
		t.Error(f)
	}
}
