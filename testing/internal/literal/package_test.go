// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	demov1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

func TestAlias(t *testing.T) {
	tests := []struct{ path, name, want string }{
		{"k8s.io/api/core/v1", "v1", "corev1"},
		{"k8s.io/api/autoscaling/v2", "v2", "autoscalingv2"},
		{"k8s.io/api/resource/v1alpha3", "v1alpha3", "resourcev1alpha3"},
		{"k8s.io/apimachinery/pkg/apis/meta/v1", "v1", "metav1"},
		{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "v1", "apiextensionsv1"},
		{"k8s.io/client-go/applyconfigurations/core/v1", "v1", "corev1ac"},
		{"example.com/website/pkg/applyconfiguration/demo/v1", "v1", "demov1ac"},
		{"k8s.io/apimachinery/pkg/api/errors", "errors", "apierrors"},
		{"k8s.io/apimachinery/pkg/types", "types", "types"},
		{"trueup.dev/testing", "testing", "rtesting"},
		{"trueup.dev/time", "time", "rtime"},
		{"sigs.k8s.io/controller-runtime", "controllerruntime", "ctrl"},
		{"trueup.dev/examples/website/api/v1", "v1", "demov1"},
		{"example.com/website/api/batch/v1", "v1", "batchv1"},
		{"example.com/website/api/my-group/v1", "v1", "mygroupv1"},
		// No scheme knows the group.
		{"example.com/other/api/v1", "v1", "v1"},
		{"example.com/other/apis/v1beta1", "v1beta1", "v1beta1"},
		// The version is the version of a module.
		{"gomodules.xyz/jsonpatch/v2", "jsonpatch", "jsonpatch"},
		{"example.com/website", "website", "website"},
		{"v1", "v1", "v1"},
	}
	scheme := runtime.NewScheme()
	if err := demov1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := newPrinter([]*runtime.Scheme{runtime.NewScheme(), scheme})
	for _, tt := range tests {
		if got := p.alias(tt.path, tt.name); got != tt.want {
			t.Errorf("%s is %s, want %s", tt.path, got, tt.want)
		}
	}
	if got := newPrinter(nil).alias("trueup.dev/examples/website/api/v1", "v1"); got != "v1" {
		t.Errorf("without a scheme %s", got)
	}
}

func TestTypeName(t *testing.T) {
	type (
		own[T any]     struct{ Value T }
		ownPair[A any] map[string]A
	)
	tests := []struct {
		value any
		want  string
	}{
		{&corev1.ConfigMap{}, "*corev1.ConfigMap"},
		{[]appsv1.Deployment{}, "[]appsv1.Deployment"},
		{map[types.NamespacedName][]*rbacv1.Role{}, "map[types.NamespacedName][]*rbacv1.Role"},
		{[2]metav1.Time{}, "[2]metav1.Time"},
		{[]byte{}, "[]byte"},
		{[]uint8{}, "[]byte"},
		{[]any{}, "[]any"},
		{[]error{}, "[]error"},
		{[]runtime.Object{}, "[]runtime.Object"},
		{reconcilers.Result{}, "reconcilers.Result"},
		{reconcilers.Request{}, "reconcilers.Request"},
		{apierrors.StatusError{}, "apierrors.StatusError"},
		{demov1.Website{}, "v1.Website"},
		{corev1ac.ConfigMapApplyConfiguration{}, "corev1ac.ConfigMapApplyConfiguration"},
		{own[int]{}, "own[int]"},
		{own[map[string]*corev1.Pod]{}, "own[map[string]*corev1.Pod]"},
		{ownPair[own[types.UID]]{}, "ownPair[own[types.UID]]"},
		{own[any]{}, "own[interface {}]"},
		{reconcilers.SyncReconciler[*corev1.Pod]{}, "reconcilers.SyncReconciler[*corev1.Pod]"},
		{struct {
			corev1.Pod
			A *corev1.Pod `json:"a"`
		}{}, "struct{corev1.Pod; A *corev1.Pod `json:\"a\"`}"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			if got := newPrinter(nil).typeName(reflect.TypeOf(tt.value)); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestImports(t *testing.T) {
	p := newPrinter(nil)
	p.print(reflect.ValueOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Now()}}), explicit)
	want := map[string]string{
		"corev1": "k8s.io/api/core/v1", "metav1": "k8s.io/apimachinery/pkg/apis/meta/v1", "time": "time",
	}
	if diff := cmp.Diff(want, p.imports); diff != "" {
		t.Errorf("imports (-want +got):\n%s", diff)
	}
}
