// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Page is a kind whose reconciler keeps a ConfigMap.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PageSpec   `json:"spec,omitempty"`
	Status PageStatus `json:"status,omitempty"`
}

type PageSpec struct {
	Title string            `json:"title,omitempty"`
	Size  int64             `json:"size,omitempty"`
	Theme string            `json:"theme,omitempty"`
	Vars  map[string]string `json:"vars,omitempty"`
	Tags  []string          `json:"tags,omitempty"`
	// Color has no effect in some tests.
	Color string `json:"color,omitempty"`
}

type PageStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (p *Page) DeepCopyObject() runtime.Object {
	c := *p
	c.ObjectMeta = *p.DeepCopy()
	c.Spec.Vars, c.Spec.Tags = maps.Clone(p.Spec.Vars), slices.Clone(p.Spec.Tags)
	c.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &c
}

type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Page `json:"items"`
}

func (l *PageList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]Page, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Page)
	}
	return &c
}

var pageScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	group := schema.GroupVersion{Group: "states.trueup.dev", Version: "v1"}
	s.AddKnownTypes(group, &Page{}, &PageList{})
	metav1.AddToGroupVersion(s, group)
	return s
}()

// pageDefinition has a schema with bounds, an enum, a default and a rule.
func pageDefinition() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"title": text,
			"color": text,
			"size":  {Type: "integer", Minimum: new(1.0), Maximum: new(5.0)},
			"theme": {
				Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"dark"`)}, {Raw: []byte(`"light"`)}},
				Default: &apiextensionsv1.JSON{Raw: []byte(`"light"`)},
			},
			"vars": {
				Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &text},
			},
			"tags": {
				Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text},
				XListType: new("set"),
			},
		},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "!has(self.title) || self.title != 'other'"}},
	}
	status := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "pages.states.trueup.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "states.trueup.dev", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "pages", Singular: "page", Kind: "Page"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": status},
				}},
			}},
		},
	}
}

// pager reconciles pages with a function that fills the ConfigMap.
type pager struct {
	client.Client

	fill func(config *corev1.ConfigMap, page *Page) error
}

func (r *pager) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	page := &Page{}
	if err := r.Get(ctx, req.NamespacedName, page); err != nil || page.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: page.Namespace, Name: page.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		if err := r.fill(config, page); err != nil {
			return err
		}
		return controllerutil.SetControllerReference(page, config, r.Scheme())
	})
	before := slices.Clone(page.Status.Conditions)
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Written"}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Failed", err.Error()
	}
	apimeta.SetStatusCondition(&page.Status.Conditions, condition)
	if !slices.Equal(before, page.Status.Conditions) {
		if err := r.Status().Update(ctx, page); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, err
}

// mustStates returns a search of States for a valid scenario.
func mustStates(t *testing.T, s Scenario) *statesSearch {
	t.Helper()
	x, err := newStates(t, s, DefaultStatesOptions())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// fillPage is correct.
func fillPage(config *corev1.ConfigMap, page *Page) error {
	vars, err := json.Marshal(page.Spec.Vars)
	if err != nil {
		return err
	}
	tags := slices.Sorted(slices.Values(page.Spec.Tags))
	config.Data = map[string]string{
		"title": page.Spec.Title, "size": fmt.Sprint(page.Spec.Size), "theme": page.Spec.Theme, "vars": string(vars),
		"tags": fmt.Sprint(tags), "color": page.Spec.Color,
	}
	return nil
}

func pageScenario(fill func(*corev1.ConfigMap, *Page) error) Scenario {
	page := &Page{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec:       PageSpec{Title: "Hello", Size: 2, Vars: map[string]string{"one": "1"}, Tags: []string{"x", "y"}},
	}
	return Scenario{
		Scheme: pageScheme,
		CRDs:   []client.Object{pageDefinition()},
		New:    func(e Env) reconcile.Reconciler { return &pager{e.Client, fill} },
		For:    &Page{},
		Owns:   []client.Object{&corev1.ConfigMap{}},
		Steps:  Lifecycle(page),
	}
}

func checkStates(t *testing.T, s Scenario) *StatesReport {
	t.Helper()
	report, err := CheckStates(t, s, DefaultStatesOptions())
	if err != nil {
		t.Fatal(err)
	}
	return report
}
