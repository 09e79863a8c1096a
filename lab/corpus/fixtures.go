// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

const (
	// namespace is the namespace of the corpus.
	namespace = "default"
	// widgetLabel is the label of the children of a widget. Its value is the widget's name.
	widgetLabel = "corpus.trueup.dev/widget"
	// finalizer is the finalizer of the controllers.
	finalizer = "corpus.trueup.dev/cleanup"
	// readyCondition is the condition that reports readiness.
	readyCondition = "Ready"
)

// scheme has the kinds of Kubernetes and of the corpus.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err) // only a mistake in this package can cause an error
	}
	group := schema.GroupVersion{Group: "corpus.trueup.dev", Version: "v1"}
	s.AddKnownTypes(group, &Widget{}, &WidgetList{}, &Bucket{}, &BucketList{})
	metav1.AddToGroupVersion(s, group)
	return s
}

// Widget is the primary kind of most entries. It runs replicas of an image.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is the desired state. Each entry uses some fields.
type WidgetSpec struct {
	Replicas int32             `json:"replicas,omitempty"`
	Image    string            `json:"image,omitempty"`
	Storage  string            `json:"storage,omitempty"`
	Host     string            `json:"host,omitempty"`
	Ref      string            `json:"ref,omitempty"`
	Paused   bool              `json:"paused,omitempty"`
	Data     map[string]string `json:"data,omitempty"`
	Tags     []string          `json:"tags,omitempty"`
	// Timeout is a duration.
	Timeout string `json:"timeout,omitempty"`
	// Scale is like Replicas, and may be set by other clients.
	Scale *int32 `json:"scale,omitempty"`
}

// WidgetStatus is the observed state.
type WidgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	ID                 string             `json:"id,omitempty"`
	Image              string             `json:"image,omitempty"`
	Host               string             `json:"host,omitempty"`
	Number             int32              `json:"number,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	Members            []string           `json:"members,omitempty"`
	LastSyncTime       *metav1.Time       `json:"lastSyncTime,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// Pending is the ID of an object that is being created.
	Pending  string `json:"pending,omitempty"`
	Attempts int32  `json:"attempts,omitempty"`
	Failures int32  `json:"failures,omitempty"`
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopy returns a copy that shares nothing.
func (w *Widget) DeepCopy() *Widget {
	c := *w
	c.ObjectMeta = *w.ObjectMeta.DeepCopy()
	c.Spec.Data = maps.Clone(w.Spec.Data)
	c.Spec.Tags = slices.Clone(w.Spec.Tags)
	if w.Spec.Scale != nil {
		c.Spec.Scale = new(*w.Spec.Scale)
	}
	c.Status.Members = slices.Clone(w.Status.Members)
	c.Status.LastSyncTime = w.Status.LastSyncTime.DeepCopy()
	c.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := *l
	l.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	for i := range c.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}

// Bucket is a primary kind that represents an external object.
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BucketSpec   `json:"spec,omitempty"`
	Status BucketStatus `json:"status,omitempty"`
}

// BucketSpec is the desired state.
type BucketSpec struct {
	Region string `json:"region,omitempty"`
	Policy string `json:"policy,omitempty"`
}

// BucketStatus is the observed state.
type BucketStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	ID                 string             `json:"id,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// BucketList is a list of buckets.
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bucket `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (b *Bucket) DeepCopyObject() runtime.Object { return b.DeepCopy() }

// DeepCopy returns a copy that shares nothing.
func (b *Bucket) DeepCopy() *Bucket {
	c := *b
	c.ObjectMeta = *b.ObjectMeta.DeepCopy()
	c.Status.Conditions = slices.Clone(b.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *BucketList) DeepCopyObject() runtime.Object {
	c := *l
	l.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	for i := range c.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}

// with returns a scenario with a reconciler. Both versions of an entry share the world.
func with(world func() converge.Scenario, create func(converge.Env) reconcile.Reconciler) func() converge.Scenario {
	return func() converge.Scenario {
		s := world()
		s.Scheme, s.New = scheme, create
		return s
	}
}

// withSetup is with for controllers that register themselves.
func withSetup(world func() converge.Scenario, setup func(manager.Manager) error) func() converge.Scenario {
	return func() converge.Scenario {
		s := world()
		s.Scheme, s.Setup = scheme, setup
		return s
	}
}

// meta returns the metadata of an object of the corpus.
func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// childMeta returns the metadata of a child, with the label of its parent.
func childMeta(owner client.Object, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: owner.GetNamespace(), Name: name, Labels: map[string]string{widgetLabel: owner.GetName()},
	}
}

// ofWidget selects the objects with the label of an object.
func ofWidget(owner client.Object) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(owner.GetNamespace()), client.MatchingLabels{widgetLabel: owner.GetName()},
	}
}

// widget returns a widget.
func widget(name string, spec WidgetSpec) *Widget {
	return &Widget{ObjectMeta: meta(name), Spec: spec}
}

// bucket returns a bucket.
func bucket(name string, spec BucketSpec) *Bucket {
	return &Bucket{ObjectMeta: meta(name), Spec: spec}
}

// podSpec returns a valid spec with a container of an image.
func podSpec(image string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}
}

// deleteCloud deletes an external object if it exists.
func deleteCloud(ctx context.Context, cloud converge.Cloud, key string) error {
	if err := cloud.Delete(ctx, key); !errors.Is(err, converge.ErrAbsent) {
		return err
	}
	return nil
}

// requestOfLabel returns a request for the widget in the label of an object.
func requestOfLabel(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[widgetLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
}

// eachObject calls do with each object of a list.
func eachObject(list client.ObjectList, do func(client.Object) error) error {
	return apimeta.EachListItem(list, func(obj runtime.Object) error { return do(obj.(client.Object)) })
}
