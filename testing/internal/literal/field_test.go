// SPDX-License-Identifier: Apache-2.0

package literal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rtesting "trueup.dev/testing"
	"trueup.dev/testing/internal/literal"
)

func TestField(t *testing.T) {
	tests := map[string]struct {
		elem  string
		items []any
		want  string
	}{
		"none": {
			elem: "client.Object",
			want: "Field: []client.Object{},",
		},
		"of an interface": {
			elem:  "client.Object",
			items: []any{&corev1.ConfigMap{}, &corev1.Secret{}, nil},
			want:  "Field: []client.Object{\n\t&corev1.ConfigMap{},\n\t&corev1.Secret{},\n\tnil,\n},",
		},
		"of a struct": {
			elem:  "rtesting.DeleteRef",
			items: []any{rtesting.DeleteRef{Kind: "ConfigMap"}, rtesting.DeleteRef{}},
			want:  "Field: []rtesting.DeleteRef{\n\t{Kind: \"ConfigMap\"},\n\t{},\n},",
		},
		"created by functions": {
			elem:  "rtesting.TrackRequest",
			items: []any{rtesting.CreateTrackRequest("", "ConfigMap", "web", "a").By("web", "b")},
			want: "Field: []rtesting.TrackRequest{\n\trtesting.CreateTrackRequest(\"\", \"ConfigMap\", \"web\", " +
				"\"a\").By(\"web\", \"b\"),\n},",
		},
		"of another type": {
			elem:  "any",
			items: []any{"a", int64(1)},
			want:  "Field: []any{\n\t\"a\",\n\tint64(1),\n},",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, literal.Field("Field", tt.elem, tt.items)); diff != "" {
				t.Errorf("field (-want +got):\n%s", diff)
			}
		})
	}
}

// A struct that is not an object states the kind in its TypeMeta.
func TestKindOfEvent(t *testing.T) {
	got := literal.Of(rtesting.Event{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}})
	if want := `rtesting.Event{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
