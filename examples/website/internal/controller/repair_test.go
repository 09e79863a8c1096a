// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
)

// Changes of other clients to children are repaired; fields that the site does not manage stay.
func TestDrift_isRepaired(t *testing.T) {
	e := newEnv(t)
	e.startController()
	site := newSite("shop")
	site.Spec.Languages = []websitev1.Language{{Code: "de"}}
	e.Add(site)
	e.ready("shop")

	tests := map[string]struct {
		child client.Object
		drift func(client.Object)
		stays func(client.Object) bool
	}{
		"content": {
			child: e.configMap("shop-content"),
			drift: func(o client.Object) {
				o.(*corev1.ConfigMap).Data = map[string]string{"index.html": "hacked", "extra.html": "x"}
				o.SetLabels(map[string]string{"team": "a"})
			},
			stays: func(o client.Object) bool { return o.GetLabels()["team"] == "a" },
		},
		"language": {
			child: e.configMap("shop-lang-de"),
			drift: func(o client.Object) { o.(*corev1.ConfigMap).BinaryData = map[string][]byte{"logo.png": {1}} },
		},
		"replicas and image": {
			child: e.deployment("shop"),
			drift: func(o client.Object) {
				d := o.(*appsv1.Deployment)
				d.Spec.Replicas = new(int32(3))
				d.Spec.Template.Spec.Containers[0].Image = "other"
				d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
			},
			stays: func(o client.Object) bool {
				return o.(*appsv1.Deployment).Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "now"
			},
		},
		"ports": {
			child: func() client.Object {
				var service corev1.Service
				e.Must(e.get(&service, "shop"))
				return &service
			}(),
			drift: func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].Port = 8080 },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := tc.child.DeepCopyObject().(client.Object)
			current := tc.child.DeepCopyObject().(client.Object)
			change(e, current, tc.drift)
			e.Eventually(func() error {
				if err := e.Get(t.Context(), client.ObjectKeyFromObject(want), current); err != nil {
					return err
				}
				if tc.stays != nil && !tc.stays(current) {
					return fmt.Errorf("labels or annotations of other clients were removed: %v", current)
				}
				if diff := cmp.Diff(spec(want), spec(current)); diff != "" {
					return fmt.Errorf("not repaired (-want +got):\n%s", diff)
				}
				return nil
			})
		})
	}
	e.ready("shop")
}

// spec returns the fields of a child that the site manages.
func spec(object client.Object) any {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return []any{o.Data, o.BinaryData, o.Labels[websitev1.LabelWebsite]}
	case *appsv1.Deployment:
		template := o.Spec.Template.DeepCopy()
		delete(template.Annotations, "kubectl.kubernetes.io/restartedAt")
		return []any{*o.Spec.Replicas, template, o.Labels}
	case *corev1.Service:
		return []any{o.Spec.Selector, o.Spec.Ports, o.Labels}
	}
	return errors.New("unexpected kind of child")
}

func TestDrift_deletedChildrenComeBack(t *testing.T) {
	e := newEnv(t)
	e.startController()
	site := newSite("shop")
	site.Spec.Languages = []websitev1.Language{{Code: "de"}}
	e.Add(site)
	e.ready("shop")
	for name, child := range map[string]client.Object{
		"shop-content": &corev1.ConfigMap{},
		"shop-lang-de": &corev1.ConfigMap{},
		"shop":         &appsv1.Deployment{},
	} {
		e.Must(e.get(child, name))
		before := child.DeepCopyObject().(client.Object)
		e.Must(e.Delete(t.Context(), child))
		e.Eventually(func() error {
			if err := e.get(child, name); err != nil {
				return err
			}
			if child.GetUID() == before.GetUID() {
				return fmt.Errorf("%T %s still exists", child, name)
			}
			if !equality.Semantic.DeepEqual(spec(before), spec(child)) {
				return fmt.Errorf("%T %s was created again, but differs: %v", child, name, child)
			}
			return nil
		})
	}
	e.ready("shop")

	// A new Service has a new address, and the record is updated.
	var service corev1.Service
	e.Must(e.get(&service, "shop"))
	uid := service.UID
	e.Must(e.Delete(t.Context(), &service))
	e.Eventually(func() error {
		if err := e.get(&service, "shop"); err != nil {
			return err
		}
		record, err := e.records.Lookup(t.Context(), "shop.example.com")
		if err != nil || service.UID == uid || record.Target != service.Spec.ClusterIP {
			return fmt.Errorf(
				"record %v (error %v) and Service %s at %s", record, fmt.Sprint(err), service.UID, service.Spec.ClusterIP,
			)
		}
		return nil
	})
}

// A ConfigMap of another owner that has the name of a child is reported, neither adopted nor served. When it is
// deleted, the site continues.
func TestForeignConfigMap_isNotTaken(t *testing.T) {
	for _, name := range []string{"shop-content", "shop-lang-de"} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.startController()
			foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"mine": "all mine"}}
			site := newSite("shop")
			site.Spec.Languages = []websitev1.Language{{Code: "de"}}
			e.Add(foreign, site)

			got := e.condition("shop", websitev1.ConditionContentReady, metav1.ConditionFalse, "AlreadyExists")
			if message := got.Status.GetCondition(websitev1.ConditionReady).Message; !strings.Contains(message, name) {
				t.Errorf("the message does not contain the name of the ConfigMap: %s", message)
			}
			now := e.configMap(name)
			if diff := cmp.Diff(foreign.Data, now.Data); diff != "" || now.ResourceVersion != foreign.ResourceVersion {
				t.Errorf("the ConfigMap was changed (-want +got):\n%s", diff)
			}
			if err := e.get(&appsv1.Deployment{}, "shop"); !apierrs.IsNotFound(err) {
				t.Errorf("reading the Deployment: error = %v, want NotFound", err)
			}
			e.Must(e.Delete(t.Context(), foreign))
			e.ready("shop")
			if !metav1.IsControlledBy(e.configMap(name), got) {
				t.Error("the ConfigMap is not owned by the site")
			}
		})
	}
}

func TestDeletion_leavesNothing(t *testing.T) {
	e := newEnv(t)
	e.startController()
	site := newSite("shop")
	site.Spec.Languages = []websitev1.Language{{Code: "de"}}
	e.Add(site)
	site = e.ready("shop")
	if diff := cmp.Diff([]string{websitev1.Finalizer}, site.Finalizers); diff != "" {
		t.Fatalf("finalizers (-want +got):\n%s", diff)
	}

	e.Must(e.Delete(t.Context(), site))
	e.waitForDeletion(&websitev1.Website{}, "shop")
	// The finalizer is removed after the record: when the site is deleted, the record no longer exists.
	if _, err := e.records.Lookup(t.Context(), "shop.example.com"); !errors.Is(err, dns.ErrNotFound) {
		t.Errorf("record: error = %v, want %v", err, dns.ErrNotFound)
	}
	e.childrenGone("shop")
}

func (e *env) childrenGone(name string) {
	e.Helper()
	e.waitForDeletion(&corev1.ConfigMap{}, name+"-content")
	e.waitForDeletion(&corev1.ConfigMap{}, name+"-lang-de")
	e.waitForDeletion(&appsv1.Deployment{}, name)
	e.waitForDeletion(&corev1.Service{}, name)
	e.Eventually(func() error {
		var pods corev1.PodList
		err := e.List(e.Context(), &pods, client.InNamespace(e.Namespace), client.MatchingLabels{
			websitev1.LabelWebsite: name,
		})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods still exist", len(pods.Items))
		}
		return err
	})
}

// stuckBook cannot withdraw records.
type stuckBook struct{ dns.Provider }

func (stuckBook) Withdraw(context.Context, string) error { return errBroken }

func TestDeletion_waitsForTheRecord(t *testing.T) {
	e := newEnv(t)
	published := e.records.Provider
	stop := e.startController()
	e.Add(newSite("shop"))
	site := e.ready("shop")
	stop()

	e.records.Provider = stuckBook{published}
	stop = e.startController()
	e.Must(e.Delete(t.Context(), site))
	e.waitForDeletion(&appsv1.Deployment{}, "shop") // the controller has reconciled the deletion
	e.Must(e.get(site, "shop"))
	if diff := cmp.Diff([]string{websitev1.Finalizer}, site.Finalizers); diff != "" {
		t.Errorf("finalizers while the record is not withdrawn (-want +got):\n%s", diff)
	}
	stop()

	e.records.Provider = published
	e.startController()
	e.waitForDeletion(&websitev1.Website{}, "shop")
}

// Without a controller, the owner references ensure that all children are deleted.
func TestDeletion_isGarbageCollected(t *testing.T) {
	e := newEnv(t)
	stop := e.startController()
	site := newSite("shop")
	site.Spec.Languages = []websitev1.Language{{Code: "de"}}
	e.Add(site)
	e.ready("shop")
	stop()

	change(e, site, func(site *websitev1.Website) { site.Finalizers = nil })
	e.Must(e.Delete(t.Context(), site))
	e.childrenGone("shop")
}
