// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/internal/testkit/fixture"
)

type (
	ownText  string
	ownValue struct{ Name string }
	// ring is a value that refers to itself.
	ring struct {
		Name  string
		Next  *ring
		All   []*ring
		Names map[string]any
	}
)

type (
	ownSelector      struct{ labels.Selector }
	ownFieldSelector struct{ fields.Selector }
	ownTime          struct{ Time time.Time }
)

func TestLiteral(t *testing.T) {
	cyclic := &ring{Name: "a"}
	cyclic.Next = &ring{Name: "b", Next: cyclic}
	cyclic.All = []*ring{cyclic}
	cyclic.Names = map[string]any{"self": nil}
	cyclic.Names["self"] = cyclic.Names

	tests := map[string]struct {
		value any
		want  string
	}{
		"unexported types of the package under test": {
			value: []any{ownText("a"), &ownValue{Name: "a"}, map[ownText]ownValue{"a": {}}},
			want:  `[]any{ownText("a"), &ownValue{Name: "a"}, map[ownText]ownValue{"a": {}}}`,
		},
		"a value that contains itself": {
			value: cyclic,
			want: `&ring{
	Name:  "a",
	Next:  &ring{Name: "b", Next: nil /* contains itself */},
	All:   []*ring{nil /* contains itself */},
	Names: map[string]any{"self": nil /* contains itself */},
}`,
		},
		"the same value twice": {
			value: func() any {
				shared := &ownValue{Name: "a"}
				return []*ownValue{shared, shared}
			}(),
			want: `[]*ownValue{{Name: "a"}, {Name: "a"}}`,
		},
		"values without a literal": {
			value: struct {
				Func  func()
				Chan  chan int
				Ctx   context.Context
				After any
			}{func() {}, make(chan int), t.Context(), "a"},
			want: `struct {
	Func  func()
	Chan  chan int
	Ctx   context.Context
	After any
}{
	Func:  nil, /* func() */
	Chan:  nil, /* chan int */
	Ctx:   nil, /* *context.cancelCtx */
	After: "a",
}`,
		},
		"unexported types of other packages": {
			value: []any{fmt.Errorf("b: %w", io.EOF), io.EOF, strings.NewReader("a")},
			want:  `[]any{nil /* *fmt.wrapError */, errors.New("EOF"), &strings.Reader{}}`,
		},
		"zero fields": {
			value: &corev1.Pod{
				Spec: corev1.PodSpec{Containers: []corev1.Container{}}, Status: corev1.PodStatus{StartTime: &metav1.Time{}},
			},
			want: `&corev1.Pod{
	Spec:   corev1.PodSpec{Containers: []corev1.Container{}},
	Status: corev1.PodStatus{StartTime: new(metav1.Time{})},
}`,
		},
		"a time that is zero in a location": {
			value: &corev1.Event{
				FirstTimestamp: metav1.NewTime(time.Time{}.Local()), EventTime: metav1.NewMicroTime(time.Time{}.Local()),
			},
			want: `&corev1.Event{}`,
		},
		"a plain time that is zero in a location": {
			value: ownTime{time.Time{}.Local()},
			want:  `ownTime{}`,
		},
		"the kind of a typed object": {
			value: []runtime.Object{&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}},
			want:  `[]runtime.Object{&corev1.ConfigMap{}}`,
		},
		"the kind of an object that no scheme knows": {
			value: fixture.NewDuck("", ""),
			want:  "&fixture.Duck{\n\tTypeMeta: metav1.TypeMeta{Kind: \"Resource\", APIVersion: \"fixture.trueup.dev/v1\"},\n}",
		},
		"a selector of another type": {
			value: []any{ownSelector{labels.Everything()}, &ownFieldSelector{fields.Everything()}},
			want: "[]any{\n\townSelector{Selector: labels.Everything()},\n\t&ownFieldSelector{Selector: " +
				"fields.Everything()},\n}",
		},
		"an anonymous interface": {
			value: []interface{ Foo() }{nil},
			want:  `[]interface{ Foo() }{nil}`,
		},
		"as long as a line may be": {
			value: []string{strings.Repeat("x", 68)},
			want:  `[]string{"` + strings.Repeat("x", 68) + `"}`,
		},
		"longer than a line may be": {
			value: []string{strings.Repeat("x", 69)},
			want:  "[]string{\n\t\"" + strings.Repeat("x", 69) + "\",\n}",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Of(tt.value, fixture.NewScheme())); diff != "" {
				t.Errorf("literal (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a scheme, the type of an object stands for its kind.
func TestLiteralWithoutScheme(t *testing.T) {
	if got, want := Of(fixture.NewDuck("", "a")), `&fixture.Duck{ObjectMeta: metav1.ObjectMeta{Name: "a"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The text of a small value that shares its parts can be too large.
func TestLiteralOfSharedParts(t *testing.T) {
	node := &ring{}
	for range 64 {
		node = &ring{All: []*ring{node, node}}
	}
	text := Of(node)
	if !strings.Contains(text, "nil /* too large */") {
		t.Error("nothing is omitted")
	}
	if len(text) > 10_000_000 {
		t.Errorf("%d bytes", len(text))
	}
}

// An expression with a syntax error, which is a mistake of the printer, is returned without formatting.
func TestFormattedMistake(t *testing.T) {
	if got := formatted("a b"); got != "a b" {
		t.Errorf("got %q", got)
	}
}
