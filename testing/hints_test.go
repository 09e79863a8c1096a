// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// Which reactors does a failing case name? Those that answered no call.
func TestWhichReactorsMatchNothing(t *testing.T) {
	config := ExpectConfig{Scheme: scheme.Scheme, WithReactors: []ReactionFunc{
		InduceFailure("create", "ConfigMap", InduceFailureOpts{Error: errors.New("no")}),
		InduceFailure("create", "secrets"),
	}}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if err := config.Config().Create(t.Context(), cm); err == nil {
		t.Fatal("the first reactor does not answer")
	}
	want := []string{"WithReactors[1] answered no call: if it should, compare its verb and its kind, which is not the " +
		"plural, with the calls."}
	if diff := cmp.Diff(want, config.idleReactors()); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

// What does a failing case say about a Request that names none of the given objects?
func TestDoesTheRequestNameSomethingGiven(t *testing.T) {
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}}
	cm := func(name string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	for name, tc := range map[string]struct {
		given []client.Object
		want  string
	}{
		"nothing is given": {},
		"given":            {given: []client.Object{cm("b"), cm("a")}},
		"another is given": {
			given: []client.Object{cm("b")},
			want:  "Request names default/a, which is none of GivenObjects: *v1.ConfigMap default/b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unknownRequest(request, tc.given); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
