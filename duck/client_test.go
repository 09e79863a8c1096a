// SPDX-License-Identifier: Apache-2.0

package duck_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/duck"
)

// whole returns an object with fields that the duck type does not have.
func whole(name string) *appsv1.Deployment {
	lbls := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: lbls},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Paused:   true,
			Selector: &metav1.LabelSelector{MatchLabels: lbls},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: lbls},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
			},
		},
		Status: appsv1.DeploymentStatus{Replicas: 1, ObservedGeneration: 5},
	}
}

// cluster returns a client for a cluster that holds the objects.
func cluster(objs ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().
		WithScheme(clientgoscheme.Scheme).
		WithObjects(objs...).
		WithStatusSubresource(&appsv1.Deployment{}).
		Build()
}

func mustGet(t *testing.T, c client.Reader, name string) *appsv1.Deployment {
	t.Helper()
	obj := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// ignoreVersion ignores the resource version, which every write changes.
var ignoreVersion = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")

func TestRead(t *testing.T) {
	plain := cluster(whole("a"), whole("b"))
	readers := map[string]client.Reader{
		"Reader":    duck.NewDuckAwareAPIReaderWrapper(plain, plain),
		"Client":    duck.NewDuckAwareClientWrapper(plain),
		"Dangerous": duck.NewDangerousDuckAwareClientWrapper(plain),
	}
	wantItem := func(name string) Scalable {
		return Scalable{
			TypeMeta: deployment,
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, ResourceVersion: "999", Labels: map[string]string{"app": name},
			},
			Spec:   ScalableSpec{Replicas: new(int32(1)), Strategy: map[string]any{}},
			Status: ScalableStatus{Replicas: 1},
		}
	}
	for name, reader := range readers {
		t.Run(name, func(t *testing.T) {
			t.Run("Get", func(t *testing.T) {
				got := scalable("stale")
				got.Status.Replicas = 99
				if err := reader.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(new(wantItem("a")), got); diff != "" {
					t.Errorf("duck (-want +got):\n%s", diff)
				}
			})
			t.Run("GetMissing", func(t *testing.T) {
				got := scalable("untouched")
				err := reader.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "missing"}, got)
				if !apierrors.IsNotFound(err) {
					t.Errorf("error %v, want not found", err)
				}
				if diff := cmp.Diff(scalable("untouched"), got); diff != "" {
					t.Errorf("a failed read changed the object (-want +got):\n%s", diff)
				}
			})
			t.Run("List", func(t *testing.T) {
				got := &ScalableList{TypeMeta: deploymentList, Items: []Scalable{{}, {}, {}}}
				if err := reader.List(t.Context(), got, client.InNamespace("ns")); err != nil {
					t.Fatal(err)
				}
				want := &ScalableList{TypeMeta: deploymentList, Items: []Scalable{wantItem("a"), wantItem("b")}}
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ListMeta{}, "ResourceVersion")); diff != "" {
					t.Errorf("ducks (-want +got):\n%s", diff)
				}
			})
			t.Run("ListOptions", func(t *testing.T) {
				got := &ScalableList{TypeMeta: deploymentList}
				if err := reader.List(t.Context(), got, client.MatchingLabels{"app": "b"}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]Scalable{wantItem("b")}, got.Items); diff != "" {
					t.Errorf("ducks (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestPatch(t *testing.T) {
	tests := map[string]struct {
		reason string
		patch  func(before *Scalable) client.Patch
		change func(s *Scalable)
		want   func(d *appsv1.Deployment)
	}{
		"Merge": {
			reason: "only the difference is written, fields that the duck does not have stay",
			patch:  func(before *Scalable) client.Patch { return client.MergeFrom(before) },
			change: func(s *Scalable) { s.Spec.Replicas = new(int32(3)); s.Annotations = map[string]string{"scaled": "yes"} },
			want: func(d *appsv1.Deployment) {
				d.Spec.Replicas = new(int32(3))
				d.Annotations = map[string]string{"scaled": "yes"}
			},
		},
		"MergeWithLock": {
			reason: "an optimistic lock compares the resource version",
			patch: func(before *Scalable) client.Patch {
				return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			},
			change: func(s *Scalable) { s.Spec.Replicas = new(int32(3)) },
			want:   func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) },
		},
		"Strategic": {
			reason: "the patch is computed from the duck, because it needs the tags of its fields",
			patch:  func(before *Scalable) client.Patch { return client.StrategicMergeFrom(before) },
			change: func(s *Scalable) { s.Spec.Replicas = new(int32(3)) },
			want:   func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) },
		},
		"Raw": {
			reason: "a ready-made patch is sent unchanged",
			patch: func(*Scalable) client.Patch {
				return client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":null}}`))
			},
			change: func(*Scalable) {},
			want:   func(d *appsv1.Deployment) { d.Spec.Paused = false },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			plain := cluster(whole("a"))
			c := duck.NewDuckAwareClientWrapper(plain)

			got := scalable("a")
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
				t.Fatal(err)
			}
			before := got.DeepCopy()
			tt.change(got)
			wantDuck := got.DeepCopy()
			if err := c.Patch(t.Context(), got, tt.patch(before)); err != nil {
				t.Fatal(err)
			}

			want := whole("a")
			tt.want(want)
			written := mustGet(t, plain, "a")
			if diff := cmp.Diff(want, written, ignoreVersion); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			wantDuck.ResourceVersion = written.ResourceVersion
			if diff := cmp.Diff(wantDuck, got); diff != "" {
				t.Errorf("the duck differs from the written object (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchConflict(t *testing.T) {
	plain := cluster(whole("a"))
	c := duck.NewDuckAwareClientWrapper(plain)
	mine := scalable("a")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil {
		t.Fatal(err)
	}
	theirs := mustGet(t, plain, "a")
	theirs.Spec.MinReadySeconds = 1
	if err := plain.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	before := mine.DeepCopy()
	mine.Spec.Replicas = new(int32(3))
	changed := mine.DeepCopy()
	err := c.Patch(t.Context(), mine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if !apierrors.IsConflict(err) {
		t.Errorf("error %v, want conflict", err)
	}
	if diff := cmp.Diff(changed, mine); diff != "" {
		t.Errorf("a failed patch changed the object (-want +got):\n%s", diff)
	}
}

func TestPatchStatus(t *testing.T) {
	for _, via := range []string{"Status", "SubResource"} {
		t.Run(via, func(t *testing.T) {
			plain := cluster(whole("a"))
			c := duck.NewDuckAwareClientWrapper(plain)
			var writer client.SubResourceWriter = c.SubResource("status")
			if via == "Status" {
				writer = c.Status()
			}

			got := scalable("a")
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
				t.Fatal(err)
			}
			before := got.DeepCopy()
			got.Status.Replicas = 7
			got.Spec.Replicas = new(int32(7)) // not part of the status
			if err := writer.Patch(t.Context(), got, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}

			want := whole("a")
			want.Status.Replicas = 7
			if diff := cmp.Diff(want, mustGet(t, plain, "a"), ignoreVersion); diff != "" {
				t.Errorf("a status patch must write only the status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(new(int32(1)), got.Spec.Replicas); diff != "" {
				t.Errorf("the duck differs from the stored object (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroupVersionKindFor(t *testing.T) {
	c := duck.NewDuckAwareClientWrapper(cluster())
	tests := map[string]struct {
		obj     client.Object
		want    schema.GroupVersionKind
		wantErr error
	}{
		"Duck": {
			obj:  &Scalable{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v2", Kind: "Widget"}},
			want: schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"},
		},
		"Registered": {
			obj:  &appsv1.Deployment{},
			want: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		},
		"UnregisteredWithoutKind": {
			obj:     &Scalable{},
			wantErr: errors.New("object must directly define APIVersion and Kind"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := c.GroupVersionKindFor(tt.obj)
			if fmt.Sprint(err) != fmt.Sprint(tt.wantErr) {
				t.Errorf("error %v, want %v", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("kind (-want +got):\n%s", diff)
			}
		})
	}
}
