// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import "strings"

// exchange is an HTTP request that is sent to a real API server and to one in memory. NS in the path and in the body is
// the namespace.
type exchange struct {
	name         string
	method, path string
	body         string
	contentType  string // application/json by default
	accept       string
	// ignore are fields of the response that may differ, besides the fields of withoutIdentity.
	ignore []string
}

const (
	tables    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	core      = "/api/v1/namespaces/NS/"
	apps      = "/apis/apps/v1/namespaces/NS/"
	newEvents = "/apis/events.k8s.io/v1/namespaces/NS/events"
	leases    = "/apis/coordination.k8s.io/v1/namespaces/NS/leases"
	things    = "/apis/conformance.trueup.dev/v1/namespaces/NS/things"
	merge     = "application/merge-patch+json"
	jsonPatch = "application/json-patch+json"
	apply     = "application/apply-patch+yaml"
)

const thingDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"things.conformance.trueup.dev"},"spec":{"group":"conformance.trueup.dev","scope":"Namespaced",
"names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList","shortNames":["th"],
"categories":["all"]},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{},
"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}},
"additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"},
{"name":"Color","type":"string","jsonPath":".spec.color","priority":1}],
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","required":["color"],"properties":{"color":{"type":"string","enum":["red","green"]},
"size":{"type":"integer","default":2,"minimum":0}},
"x-kubernetes-validations":[{"rule":"self.size < 10","message":"too large"}]},
"status":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}}`

const webDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2,
"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
"spec":{"containers":[{"name":"c","image":"nginx"}]}}}}`

func aConfigMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","labels":{"app":"a"}},
"data":{"a":"1"}}`
}

func aThing(name, spec string) string {
	return `{"apiVersion":"conformance.trueup.dev/v1","kind":"Thing","metadata":{"name":"` + name + `"},
"spec":` + spec + `}`
}

// exchanges are sent in this order.
var exchanges = []exchange{
	{name: "create", method: "POST", path: core + "configmaps", body: aConfigMap("a")},
	{name: "create another", method: "POST", path: core + "configmaps?fieldManager=me", body: aConfigMap("b")},
	{name: "create again", method: "POST", path: core + "configmaps", body: aConfigMap("a")},
	{
		name: "dry run", method: "POST", path: core + "configmaps?dryRun=All", body: aConfigMap("c"),
	},
	{name: "invalid dry run", method: "POST", path: core + "configmaps?dryRun=Some", body: aConfigMap("c")},
	{
		name: "create from YAML", method: "POST", path: core + "configmaps", contentType: "application/yaml",
		body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {a: b}\n",
	},
	{
		name: "unknown field with a warning", method: "POST", path: core + "configmaps",
		body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"warned"},"dta":{}}`,
	},
	{
		name: "unknown field, ignored", method: "POST", path: core + "configmaps?fieldValidation=Ignore",
		body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ignored"},"dta":{}}`,
	},
	{
		name: "unknown field, refused", method: "POST", path: core + "configmaps?fieldValidation=Strict",
		body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"strict"},"dta":{}}`,
	},
	{
		name: "duplicate field, refused", method: "POST", path: core + "configmaps?fieldValidation=Strict",
		body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"strict"},"data":{"a":"1","a":"2"}}`,
	},
	{
		name: "unknown field in a patch, refused", method: "PATCH", path: core + "configmaps/a?fieldValidation=Strict",
		contentType: merge, body: `{"dta":{}}`, ignore: []string{"message"},
	},
	{
		name: "unknown field in a patch, with a warning", method: "PATCH", path: core + "configmaps/a",
		contentType: merge, body: `{"dta":{}}`,
	},
	{name: "malformed", method: "POST", path: core + "configmaps", body: `{`},
	{
		name:   "another kind",
		method: "POST",
		path:   core + "configmaps",
		body:   `{"apiVersion":"v1","kind":"Secret"}`,
	},
	{name: "get", method: "GET", path: core + "configmaps/a"},
	{name: "get what does not exist", method: "GET", path: core + "configmaps/nothing"},
	{name: "list", method: "GET", path: core + "configmaps?labelSelector=app%3Da"},
	{name: "first page", method: "GET", path: core + "configmaps?limit=2", ignore: []string{"continue"}},
	{name: "invalid continue token", method: "GET", path: core + "configmaps?limit=2&continue=x"},
	{name: "invalid selector", method: "GET", path: core + "configmaps?labelSelector=%2C%2C"},
	{
		name:   "future version",
		method: "GET",
		path:   core + "configmaps?resourceVersion=99999999",
		ignore: []string{"message"},
	},
	{name: "a lease", method: "POST", path: leases, body: `{"metadata":{"name":"a"},"spec":{"holderIdentity":"me"}}`},
	{name: "table", method: "GET", path: leases + "/a", accept: tables},
	{name: "table of a list", method: "GET", path: leases + "?fieldSelector=metadata.name%3Da", accept: tables},
	{name: "table with objects", method: "GET", path: leases + "?includeObject=Object", accept: tables},
	{
		name: "metadata", method: "GET", path: core + "configmaps/a",
		accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
	},
	{
		name:        "apply",
		method:      "PATCH",
		path:        core + "configmaps/applied?fieldManager=me",
		contentType: apply,
		body:        aConfigMap("applied"),
	},
	{
		name: "apply a conflict", method: "PATCH", path: core + "configmaps/applied?fieldManager=you", contentType: apply,
		body: strings.Replace(aConfigMap("applied"), `"1"`, `"2"`, 1),
	},
	{
		name: "apply with force", method: "PATCH", path: core + "configmaps/applied?fieldManager=you&force=true",
		contentType: apply, body: strings.Replace(aConfigMap("applied"), `"1"`, `"2"`, 1),
	},
	{
		name: "apply without a manager", method: "PATCH", path: core + "configmaps/applied", contentType: apply,
		body: aConfigMap("applied"),
	},
	{
		name:        "unknown patch",
		method:      "PATCH",
		path:        core + "configmaps/a",
		contentType: "application/unknown",
		body:        `{}`,
	},
	{name: "a deployment", method: "POST", path: apps + "deployments", body: webDeployment},
	{name: "scale", method: "GET", path: apps + "deployments/web/scale"},
	{
		name:        "rescale",
		method:      "PATCH",
		path:        apps + "deployments/web/scale",
		contentType: merge,
		body:        `{"spec":{"replicas":3}}`,
	},
	{
		name: "strategic merge patch", method: "PATCH", path: apps + "deployments/web",
		contentType: "application/strategic-merge-patch+json",
		body:        `{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"redis"}]}}}}`,
	},
	{
		name: "unknown field of a container", method: "PUT", path: apps + "deployments/web?fieldValidation=Strict",
		body: strings.Replace(webDeployment, `"image"`, `"imge":"x","image"`, 1),
	},
	{
		name: "status", method: "PATCH", path: apps + "deployments/web/status", contentType: merge,
		body: `{"status":{"replicas":2},"spec":{"replicas":7}}`,
	},
	{
		name:   "a service",
		method: "POST",
		path:   core + "services",
		ignore: []string{"clusterIP", "clusterIPs"},
		body: `{"apiVersion":"v1",
"kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`,
	},
	{name: "delete a service", method: "DELETE", path: core + "services/web", ignore: []string{"clusterIP", "clusterIPs"}},
	{
		name:        "delete with a finalizer",
		method:      "PATCH",
		path:        core + "configmaps/b",
		contentType: merge,
		body:        `{"metadata":{"finalizers":["trueup.dev/test"]}}`,
	},
	{name: "which waits", method: "DELETE", path: core + "configmaps/b"},
	{name: "delete", method: "DELETE", path: core + "configmaps/a", body: `{"propagationPolicy":"Background"}`},
	{name: "delete again", method: "DELETE", path: core + "configmaps/a"},
	{
		name:   "delete with another UID",
		method: "DELETE",
		path:   core + "configmaps/applied",
		body:   `{"preconditions":{"uid":"x"}}`,
		ignore: []string{"message"},
	},
	{name: "delete a collection", method: "DELETE", path: core + "configmaps?labelSelector=app%3Da"},
	{name: "delete a deployment", method: "DELETE", path: apps + "deployments/web"},
	{
		name:   "create in a namespace that does not exist",
		method: "POST",
		path:   "/api/v1/namespaces/missing/configmaps",
		body:   aConfigMap("a"),
	},
	{name: "a resource that does not exist", method: "GET", path: core + "nothings"},
	{name: "a group that does not exist", method: "GET", path: "/apis/nothing.example.com/v1"},
	{name: "a subresource that does not exist", method: "GET", path: core + "configmaps/a/nothing"},
	{name: "a wrong method", method: "PUT", path: core + "configmaps", body: `{}`},
	{name: "a thing", method: "POST", path: things, body: aThing("a", `{"color":"red"}`)},
	{name: "an invalid thing", method: "POST", path: things, body: aThing("b", `{"size":-1,"color":"red"}`)},
	{name: "a thing against a rule", method: "POST", path: things, body: aThing("b", `{"color":"red","size":11}`)},
	{
		name:   "an unknown field of a thing",
		method: "POST",
		path:   things,
		body:   aThing("warned", `{"color":"red","shade":"red"}`),
	},
	{
		name:   "refused",
		method: "POST",
		path:   things + "?fieldValidation=Strict",
		body:   aThing("b", `{"color":"red","shade":"red"}`),
	},
	{
		name:        "a patch of a thing, refused",
		method:      "PATCH",
		path:        things + "/a?fieldValidation=Strict",
		contentType: merge,
		body:        `{"spec":{"shade":"red"}}`,
		ignore:      []string{"message"},
	},
	{
		name:        "a strategic merge patch of a thing",
		method:      "PATCH",
		path:        things + "/a",
		contentType: "application/strategic-merge-patch+json",
		body:        `{"spec":{"size":3}}`,
	},
	{
		name:        "the status of a thing",
		method:      "PATCH",
		path:        things + "/a/status",
		contentType: merge,
		body:        `{"status":{"size":1},"spec":{"size":7}}`,
	},
	{name: "the scale of a thing", method: "GET", path: things + "/a/scale"},
	{name: "things", method: "GET", path: things, accept: tables},
	{
		name:        "apply a thing",
		method:      "PATCH",
		path:        things + "/applied?fieldManager=me",
		contentType: apply,
		body:        aThing("applied", `{"color":"green"}`),
	},
	{
		name:        "apply an unknown field",
		method:      "PATCH",
		path:        things + "/applied?fieldManager=me",
		contentType: apply,
		body:        aThing("applied", `{"shade":"green"}`),
	},
	{name: "delete a thing", method: "DELETE", path: things + "/a"},
	{name: "delete all things", method: "DELETE", path: things},
	{
		name:   "resources of the group",
		method: "GET",
		path:   "/apis/conformance.trueup.dev/v1",
		ignore: []string{"storageVersionHash"},
	},
	{
		name:   "an access review",
		method: "POST",
		path:   "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		ignore: []string{"reason", "metadata"},
		body: `{
"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",
"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`,
	},
	{
		name: "a pod", method: "POST", path: core + "pods", body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`,
		ignore: []string{"serviceAccount", "serviceAccountName"},
	},
	{name: "bind it", method: "POST", path: core + "pods/p/binding", body: `{"apiVersion":"v1","kind":"Binding",
"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`},
	{name: "events", method: "GET", path: core + "events?fieldSelector=involvedObject.name%3Dnothing"},
	{name: "a namespace", method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"finalized-NS"}}`},
	{name: "finalize it", method: "PUT", path: "/api/v1/namespaces/finalized-NS/finalize", body: `{"apiVersion":"v1",
"kind":"Namespace","metadata":{"name":"finalized-NS"},"spec":{"finalizers":[]}}`},
	{name: "delete it", method: "DELETE", path: "/api/v1/namespaces/finalized-NS"},
	{name: "which is final", method: "GET", path: "/api/v1/namespaces/finalized-NS"},
	{name: "delete the protected namespace", method: "DELETE", path: "/api/v1/namespaces/kube-system"},
	{
		name: "a new event", method: "POST", path: newEvents, body: `{"apiVersion":"events.k8s.io/v1","kind":"Event",
"metadata":{"name":"e"},"regarding":{"kind":"Thing","namespace":"NS","name":"t"},"note":"text","reason":"Tested",
"type":"Normal",
"action":"Test","eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"trueup.dev/test",
"reportingInstance":"one"}`, ignore: []string{"managedFields"},
	},
	{
		name: "its series", method: "PATCH", path: newEvents + "/e", contentType: "application/strategic-merge-patch+json",
		body: `{"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:01.000000Z"}}`, ignore: []string{"managedFields"},
	},
	{
		name: "as an event of the core group", method: "GET", path: core + "events/e", ignore: []string{"managedFields"},
	},
	{
		name: "new events by what they are about", method: "GET", path: newEvents + "?fieldSelector=regarding.name%3Dt",
		ignore: []string{"managedFields"},
	},
	{name: "new events about something else", method: "GET", path: newEvents + "?fieldSelector=regarding.name%3Dnothing"},
}
