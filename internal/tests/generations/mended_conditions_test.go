// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/apis"
	"trueup.dev/sandbox"
	_ "trueup.dev/sandbox/memory"
)

// What replaces the conditions of v0.1 to v0.3, as the guide has it.

func TestV05_Conditions(t *testing.T) {
	const ready = "Ready" // was apis.ConditionType
	status := apis.Status{Conditions: []metav1.Condition{{Type: ready, Status: metav1.ConditionTrue, Reason: "Deployed"}}}
	condition := status.GetCondition(ready)
	equal(t, "is true, false, unknown", []bool{true, false, false}, []bool{
		// was condition.IsTrue(), …
		apis.ConditionIsTrue(condition), apis.ConditionIsFalse(condition), apis.ConditionIsUnknown(condition),
	})
}

// A condition without influence had the severity Info or Warning. Here it is not a dependent of the set.
func TestV05_ConditionSeverity(t *testing.T) {
	status := &apis.Status{}
	manage := func(set apis.ConditionSet) apis.ConditionManager { return set.ManageWithContext(t.Context(), status) }
	conditions := manage(apis.NewLivingConditionSet("Deployed"))
	conditions.InitializeConditions()
	conditions.MarkTrue("Deployed", "Deployed", "") // was MarkTrue("Deployed")
	conditions.MarkFalse("Advertised", "Disabled", "")
	equal(t, "happy", true, conditions.IsHappy())
	conditions.SetCondition(metav1.Condition{Type: "Advertised", Status: metav1.ConditionUnknown, Reason: "Asking"})
	equal(t, "reason", "Asking", status.GetCondition("Advertised").Reason)
	conditions.MarkFalse("Deployed", "Crashed", "")
	equal(t, "happy", false, conditions.IsHappy())
}

// No API server stores a metav1.Condition without a reason, whatever its status is.
func TestV05_ConditionsNeedAReason(t *testing.T) {
	// The API in memory validates custom resources with the code of the API server.
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Backend: sandbox.Memory}, CRDs: []any{gatewayCRD()},
	})
	api, err := client.New(env.RESTConfig(), client.Options{Scheme: testScheme})
	if err != nil {
		t.Fatal(err)
	}
	gateway := newGateway()
	gateway.Namespace, gateway.UID = env.Namespace, ""
	if err := api.Create(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	for reason, want := range map[string]bool{"": false, "Deployed": true} {
		gateway.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(),
		}}
		if err := api.Status().Update(t.Context(), gateway); (err == nil) != want {
			t.Errorf("reason %q: stored: %t (%v), want %t", reason, err == nil, err, want)
		}
	}
}

// gatewayCRD is the definition of the kind Gateway, as controller-gen makes it for the conditions of its status.
func gatewayCRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	reason := apiextensionsv1.JSONSchemaProps{
		Type: "string", MinLength: new(int64(1)), Pattern: `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`,
	}
	condition := apiextensionsv1.JSONSchemaProps{
		Type:     "object",
		Required: []string{"type", "status", "reason"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"type": text, "status": text, "reason": reason, "message": text, "lastTransitionTime": text,
		},
	}
	schema := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition}},
		}},
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gateways." + group.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: "Gateway", Plural: "gateways", Singular: "gateway", ListKind: "GatewayList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: group.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
			}},
		},
	}
}
