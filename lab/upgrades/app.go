// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

var group = schema.GroupVersion{Group: "upgrades.trueup.dev", Version: "v1"}

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err) // only a mistake in this package can cause an error
	}
	s.AddKnownTypes(group, &App{}, &AppList{})
	metav1.AddToGroupVersion(s, group)
	return s
}

// App is the primary kind of all entries.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AppSpec   `json:"spec,omitempty"`
	Status AppStatus `json:"status,omitempty"`
}

// AppSpec is the desired state.
type AppSpec struct {
	Image string `json:"image,omitempty"`
	Size  int    `json:"size,omitempty"`
}

// AppStatus is the observed state. Each entry uses some fields.
type AppStatus struct {
	Ready              bool     `json:"ready,omitempty"`
	Migrated           bool     `json:"migrated,omitempty"`
	Initialized        bool     `json:"initialized,omitempty"`
	ObservedGeneration int64    `json:"observedGeneration,omitempty"`
	Record             string   `json:"record,omitempty"`
	Endpoint           string   `json:"endpoint,omitempty"`
	Address            *Address `json:"address,omitempty"`
}

// Address is where an app is reached.
type Address struct {
	Host string `json:"host"`
}

// DeepCopyObject implements runtime.Object.
func (a *App) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopy returns a copy that shares nothing.
func (a *App) DeepCopy() *App {
	c := *a
	c.ObjectMeta = *a.ObjectMeta.DeepCopy()
	if a.Status.Address != nil {
		c.Status.Address = new(*a.Status.Address)
	}
	return &c
}

// AppList is a list of apps.
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []App `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *AppList) DeepCopyObject() runtime.Object {
	c := *l
	l.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	for i := range c.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}
