// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// anyMessageDiffer compares as all cases do, but for the messages of events, which other teams translate.
type anyMessageDiffer struct{ rtesting.Differ }

func (d anyMessageDiffer) Event(expected, actual rtesting.Event) string {
	expected.Message = actual.Message
	return d.Differ.Event(expected, actual)
}

// Embed the default and override what is to be compared in another way. The result is for the Differ field of a case.
func ExampleDiffer() {
	var differ rtesting.Differ = anyMessageDiffer{rtesting.DefaultDiffer}

	created := rtesting.Event{Type: corev1.EventTypeNormal, Reason: "Created", Message: "Created ConfigMap"}
	translated := rtesting.Event{Type: corev1.EventTypeNormal, Reason: "Created", Message: "ConfigMap angelegt"}
	failed := rtesting.Event{Type: corev1.EventTypeWarning, Reason: "CreationFailed"}
	fmt.Println("translated differs:", differ.Event(created, translated) != "")
	fmt.Println("failed differs:", differ.Event(created, failed) != "")
	// Output:
	// translated differs: false
	// failed differs: true
}

func ExampleDefaultDiffer() {
	expected := &corev1.ConfigMap{Data: map[string]string{"color": "teal"}}
	created := rtesting.With(expected, func(cm *corev1.ConfigMap) { cm.ResourceVersion = "1" })

	fmt.Println("as a creation:", rtesting.DefaultDiffer.ResourceCreate(expected, created) == "")
	fmt.Println("as the resource of a subreconciler:", rtesting.DefaultDiffer.Resource(expected, created) == "")
	// Output:
	// as a creation: true
	// as the resource of a subreconciler: false
}

// strictDiffer also compares resource versions of updates.
type strictDiffer struct{ rtesting.Differ }

func (strictDiffer) ResourceUpdate(expected, actual client.Object) string {
	return cmp.Diff(
		expected, actual, reconcilers.IgnoreAllUnexported, rtesting.IgnoreTypeMeta, rtesting.IgnoreCreationTimestamp,
	)
}

// The options are there for comparisons of one's own.
func ExampleIgnoreResourceVersion() {
	read := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theme", ResourceVersion: "1"}}
	updated := rtesting.With(read, func(cm *corev1.ConfigMap) { cm.ResourceVersion = "2" })

	fmt.Println(cmp.Equal(read, updated, rtesting.IgnoreResourceVersion))
	fmt.Println(strictDiffer{rtesting.DefaultDiffer}.ResourceUpdate(read, updated) == "")
	// Output:
	// true
	// false
}

func ExampleColorizeDiff() {
	colored := rtesting.ColorizeDiff("  same\n- expected\n+ actual\n")

	// Colors are on when the environment has COLOR_DIFF, whether there is a terminal or not.
	fmt.Println(strings.TrimSpace(colored))
	// Output:
	// same
	// - expected
	// + actual
}
