// SPDX-License-Identifier: Apache-2.0

package tracker_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"trueup.dev/tracker"
)

func configMap(name string, lbls map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, Labels: lbls}}
}

// Two websites depend on a theme that neither of them owns.
func Example() {
	t := tracker.New(clientgoscheme.Scheme, 20*time.Hour)

	// in the reconciler of the websites; the theme need not exist yet
	theme := configMap("theme", nil)
	for _, name := range []string{"blog", "shop"} {
		website := configMap(name, nil) // any object will do
		if err := t.TrackObject(theme, website); err != nil {
			fmt.Println(err)
		}
	}

	// in the event handler of the ConfigMaps
	for _, changed := range []string{"theme", "unrelated"} {
		observers, err := t.GetObservers(configMap(changed, nil))
		fmt.Println(changed, len(observers), err)
	}
	// Output:
	// theme 2 <nil>
	// unrelated 0 <nil>
}

func ExampleNew() {
	t := tracker.New(clientgoscheme.Scheme, time.Nanosecond)
	if err := t.TrackObject(configMap("theme", nil), configMap("blog", nil)); err != nil {
		fmt.Println(err)
	}

	// the lease has already expired
	observers, err := t.GetObservers(configMap("theme", nil))
	fmt.Println(observers, err)
	// Output: [] <nil>
}

func ExampleTracker() {
	t := tracker.New(clientgoscheme.Scheme, time.Hour)
	blog := configMap("blog", nil)

	// watches all plugins of the namespace
	err := t.TrackReference(tracker.Reference{
		Kind:      "ConfigMap",
		Namespace: "web",
		Selector:  labels.SelectorFromSet(labels.Set{"type": "plugin"}),
	}, blog)
	if err != nil {
		fmt.Println(err)
	}

	observers, err := t.GetObservers(configMap("gallery", map[string]string{"type": "plugin"}))
	fmt.Println(observers, err)
	// Output: [web/blog] <nil>
}

func ExampleForgetter() {
	t := tracker.New(clientgoscheme.Scheme, time.Hour)
	if err := t.TrackObject(configMap("theme", nil), configMap("blog", nil)); err != nil {
		fmt.Println(err)
	}

	// in the reconciler, when the blog no longer exists
	if f, ok := t.(tracker.Forgetter); ok {
		f.Forget(configMap("blog", nil))
	}

	observers, err := t.GetObservers(configMap("theme", nil))
	fmt.Println(observers, err)
	// Output: [] <nil>
}

func ExampleReference() {
	t := tracker.New(clientgoscheme.Scheme, time.Hour)

	err := t.TrackReference(tracker.Reference{Kind: "ConfigMap", Namespace: "web"}, configMap("blog", nil))
	fmt.Println(err)
	// Output:
	// invalid Reference:
	// must provide either Name or Selector
}

func ExampleNewKey() {
	key := tracker.NewKey(
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), types.NamespacedName{Namespace: "web", Name: "theme"},
	)
	fmt.Println(key.GroupKind, key.NamespacedName)
	// Output: ConfigMap web/theme
}
