// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import "strings"

const (
	configMaps = core + "configmaps"
	damaged    = configMaps + "/m"
	watching   = configMaps + "?watch=true&timeoutSeconds=1&"
)

// inText is for errors that quote the whole object, with its identity. Package fidelity compares them.
var inText = []string{"message"}

// malformed are exchanges that a server refuses because of their form, and some that it accepts although their form is
// unusual. They are sent in this order. No client of client-go sends them.
var malformed = []exchange{
	{name: "an object to damage", method: "POST", path: configMaps, body: aConfigMap("m")},
	{name: "a thing to damage", method: "POST", path: things, body: aThing("m", `{"color":"red"}`)},
	{name: "update without a name", method: "PUT", path: damaged, body: `{"data":{"a":"1"}}`},
	{name: "update with an empty body", method: "PUT", path: damaged},
	{name: "update a thing without a name", method: "PUT", path: things + "/m", body: aThing("", `{"color":"red"}`)},
	{name: "update a status without a name", method: "PUT", path: things + "/m/status", body: aThing("", `{}`)},
	{name: "update a scale without a name", method: "PUT", path: things + "/m/scale", body: `{"spec":{"replicas":1}}`},
	{
		name: "update a scale with another name", method: "PUT", path: things + "/m/scale",
		body: `{"metadata":{"name":"x"},"spec":{"replicas":1}}`,
	},
	{name: "update with another name", method: "PUT", path: damaged, body: aConfigMap("x")},
	{
		name: "update in another namespace", method: "PUT", path: damaged,
		body: `{"metadata":{"name":"m","namespace":"x"}}`,
	},
	{
		name: "another namespace and no name", method: "PUT", path: damaged,
		body: `{"metadata":{"namespace":"x"}}`,
	},
	{name: "update to another kind", method: "PUT", path: damaged, body: `{"apiVersion":"v1","kind":"Secret"}`},
	{
		name: "update to another version", method: "PUT", path: damaged,
		body: `{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"m"}}`,
	},
	{
		name: "a thing as another kind", method: "PUT", path: things + "/m",
		body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"m"}}`,
	},
	{
		name: "a thing as another version", method: "PUT", path: things + "/m",
		body: `{"apiVersion":"conformance.trueup.dev/v2","kind":"Thing","metadata":{"name":"m"}}`,
	},
	{name: "a thing without a kind", method: "PUT", path: things + "/m", body: `{"metadata":{"name":"m"}}`},
	{name: "a thing without a kind, created", method: "POST", path: things, body: `{"metadata":{"name":"n"}}`},
	{name: "create without a name", method: "POST", path: configMaps, body: `{}`},
	{name: "text", method: "POST", path: configMaps, contentType: "text/plain", body: aConfigMap("t")},
	{name: "CBOR", method: "POST", path: configMaps, contentType: "application/cbor", body: aConfigMap("t")},
	{name: "a body as a patch", method: "POST", path: configMaps, contentType: apply, body: aConfigMap("t")},
	{
		name: "JSON with parameters", method: "POST", path: configMaps + "?dryRun=All",
		contentType: "application/json; charset=utf-8", body: aConfigMap("t"),
	},
	{name: "no media type", method: "POST", path: configMaps, contentType: "json", body: aConfigMap("t")},
	{name: "any media type", method: "POST", path: configMaps, contentType: "*/*", body: aConfigMap("t")},
	{name: "update with text", method: "PUT", path: damaged, contentType: "text/plain", body: aConfigMap("m")},
	{
		name: "update with a patch", method: "PUT", path: damaged, contentType: apply, body: aConfigMap("m"),
	},
	{
		name: "a thing as text", method: "POST", path: things, contentType: "text/plain",
		body: aThing("t", `{"color":"red"}`),
	},
	{
		name: "text and invalid options", method: "POST", path: configMaps + "?dryRun=Some", contentType: "text/plain",
		body: aConfigMap("t"),
	},
	{
		name: "update with text and invalid options", method: "PUT", path: damaged + "?dryRun=Some",
		contentType: "text/plain", body: aConfigMap("m"),
	},
	{name: "a patch as JSON", method: "PATCH", path: damaged, contentType: "application/json", body: `{}`},
	{
		name: "a patch of nothing, as text", method: "PATCH", path: core + "configmaps/nothing", contentType: "text/plain",
		body: `{}`,
	},
	{
		name: "a patch as CBOR", method: "PATCH", path: damaged, contentType: "application/apply-patch+cbor",
		body: `{}`,
	},
	{
		name: "a patch of a status as text", method: "PATCH", path: things + "/m/status", contentType: "text/plain",
		body: `{}`,
	},
	{
		name: "a patch of a scale as text", method: "PATCH", path: things + "/m/scale", contentType: "text/plain",
		body: `{}`,
	},
	{name: "delete with text", method: "DELETE", path: damaged, contentType: "text/plain", body: `{}`},
	{name: "delete with a patch", method: "DELETE", path: damaged, contentType: apply, body: `{}`},
	{name: "delete with another kind", method: "DELETE", path: damaged, body: aConfigMap("m")},
	{
		name: "delete with an unknown kind", method: "DELETE", path: damaged,
		body: `{"apiVersion":"v7","kind":"Nothing"}`,
	},
	{
		name: "delete with another options kind", method: "DELETE", path: damaged,
		body: `{"apiVersion":"v1","kind":"ListOptions"}`,
	},
	{
		name: "delete with CreateOptions", method: "DELETE", path: damaged,
		body: `{"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}`,
	},
	{
		name: "delete with another version", method: "DELETE", path: damaged,
		body: `{"apiVersion":"v2","kind":"DeleteOptions","dryRun":["All"]}`,
	},
	{name: "delete with half a kind", method: "DELETE", path: damaged, body: `{"kind":"ConfigMap"}`},
	{name: "delete with a version", method: "DELETE", path: damaged, body: `{"apiVersion":"v2","dryRun":["All"]}`},
	{
		name: "delete with an unknown version of a group", method: "DELETE", path: damaged,
		body: `{"apiVersion":"nothing.example.com/v2","kind":"DeleteOptions","dryRun":["All"]}`,
	},
	{
		name: "delete with options", method: "DELETE", path: damaged,
		body: `{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}`,
	},
	{
		name: "delete with meta options", method: "DELETE", path: damaged,
		body: `{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions","dryRun":["All"]}`,
	},
	{
		name: "delete with options of a group", method: "DELETE", path: damaged,
		body: `{"apiVersion":"apps/v1","kind":"DeleteOptions","dryRun":["All"]}`,
	},
	{
		name: "delete with an unknown field", method: "DELETE", path: damaged,
		body: `{"dryRun":["All"],"dryRn":1}`,
	},
	{
		name: "delete with a duplicate field", method: "DELETE", path: damaged,
		body: `{"dryRun":["All"],"dryRun":["All"]}`,
	},
	{
		name: "delete with a wrong type", method: "DELETE", path: damaged,
		body: `{"dryRun":["All"],"gracePeriodSeconds":"x"}`,
	},
	{name: "delete with a malformed body", method: "DELETE", path: damaged, body: `{`},
	{name: "delete with an array", method: "DELETE", path: damaged, body: `[]`},
	{name: "delete a thing with itself", method: "DELETE", path: things + "/m", body: aThing("m", `{"color":"red"}`)},
	{
		name: "delete a thing with options", method: "DELETE", path: things + "/m?dryRun=All",
		body: `{"apiVersion":"conformance.trueup.dev/v1","kind":"DeleteOptions","dryRun":["All"]}`,
	},
	{
		name: "delete all with another kind", method: "DELETE", path: configMaps + "?labelSelector=a%3Dnothing",
		body: aConfigMap("m"),
	},
	{
		name: "delete all with text", method: "DELETE", path: configMaps + "?labelSelector=a%3Dnothing",
		contentType: "text/plain", body: `{}`,
	},
	{
		name: "delete all with a version match", method: "DELETE",
		path: configMaps + "?labelSelector=a%3Dnothing&resourceVersionMatch=junk",
	},
	{
		name: "patch the kind", method: "PATCH", path: damaged, contentType: jsonPatch,
		body:   `[{"op":"replace","path":"/kind","value":"Secret"}]`,
		ignore: inText,
	},
	{
		name: "patch the version", method: "PATCH", path: damaged, contentType: jsonPatch,
		body:   `[{"op":"replace","path":"/apiVersion","value":"v2"}]`,
		ignore: inText,
	},
	{
		name: "patch both", method: "PATCH", path: damaged, contentType: jsonPatch,
		body:   `[{"op":"replace","path":"/apiVersion","value":"v7"},{"op":"replace","path":"/kind","value":"Nothing"}]`,
		ignore: inText,
	},
	{
		name: "remove the kind", method: "PATCH", path: damaged, contentType: jsonPatch,
		body: `[{"op":"remove","path":"/kind"}]`,
	},
	{
		name: "kind of a wrong type", method: "PATCH", path: damaged, contentType: jsonPatch,
		body:   `[{"op":"replace","path":"/kind","value":1}]`,
		ignore: inText,
	},
	{
		name: "merge the kind", method: "PATCH", path: damaged, contentType: merge,
		body:   `{"kind":"Secret"}`,
		ignore: inText,
	},
	{
		name: "merge the version", method: "PATCH", path: damaged, contentType: merge,
		body:   `{"apiVersion":"apps/v1"}`,
		ignore: inText,
	},
	{name: "merge no kind", method: "PATCH", path: damaged, contentType: merge, body: `{"kind":null}`},
	{
		name: "merge the kind strategically", method: "PATCH", path: damaged,
		contentType: "application/strategic-merge-patch+json", body: `{"kind":"Secret","apiVersion":"v7"}`,
	},
	{
		name: "merge no kind strategically", method: "PATCH", path: damaged,
		contentType: "application/strategic-merge-patch+json", body: `{"kind":null,"apiVersion":null}`,
	},
	{
		name: "patch the kind of a thing", method: "PATCH", path: things + "/m", contentType: jsonPatch,
		body: `[{"op":"replace","path":"/kind","value":"Other"}]`,
	},
	{
		name: "patch the group of a thing", method: "PATCH", path: things + "/m", contentType: jsonPatch,
		body: `[{"op":"replace","path":"/apiVersion","value":"v1"}]`,
	},
	{
		name: "remove the kind of a thing", method: "PATCH", path: things + "/m", contentType: jsonPatch,
		body:   `[{"op":"remove","path":"/kind"}]`,
		ignore: inText,
	},
	{
		name: "merge no version of a thing", method: "PATCH", path: things + "/m", contentType: merge,
		body: `{"apiVersion":null}`,
	},
	{
		name: "merge the kind of a thing's status", method: "PATCH", path: things + "/m/status?dryRun=All",
		contentType: merge,
		body:        `{"kind":"Other"}`,
	},
	{
		name: "merge the kind of a scale", method: "PATCH", path: things + "/m/scale", contentType: merge,
		body:   `{"kind":"Other"}`,
		ignore: inText,
	},
	{
		name: "apply another kind", method: "PATCH", path: damaged + "?fieldManager=me", contentType: apply,
		body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"m"}}`,
	},
	{
		name: "apply without a kind", method: "PATCH", path: damaged + "?fieldManager=me", contentType: apply,
		body: `{"metadata":{"name":"m"}}`,
	},
	{
		name: "apply a thing of another kind", method: "PATCH", path: things + "/m?fieldManager=me", contentType: apply,
		body: `{"apiVersion":"conformance.trueup.dev/v1","kind":"Other","metadata":{"name":"m"}}`,
	},
	{
		name: "apply a thing of another group", method: "PATCH", path: things + "/m?fieldManager=me", contentType: apply,
		body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}}`,
	},
	{
		name: "apply a new thing of another kind", method: "PATCH", path: things + "/new?fieldManager=me",
		contentType: apply,
		body:        `{"apiVersion":"conformance.trueup.dev/v1","kind":"Other","metadata":{"name":"new"},"spec":{"color":"red"}}`,
	},
	{
		name: "apply a new object of another kind", method: "PATCH", path: core + "configmaps/new?fieldManager=me",
		contentType: apply, body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"new"}}`,
	},
	{
		name: "apply a new object of another version", method: "PATCH", path: core + "configmaps/new?fieldManager=me",
		contentType: apply, body: `{"apiVersion":"v7","kind":"ConfigMap","metadata":{"name":"new"}}`,
	},
	{
		name: "create half a kind", method: "POST", path: configMaps + "?dryRun=All",
		body: `{"kind":"ConfigMap","metadata":{"name":"half"}}`,
	},
	{
		name: "create half of another kind", method: "POST", path: configMaps + "?dryRun=All",
		body: `{"kind":"Secret","metadata":{"name":"half"}}`,
	},
	{
		name: "create only a version", method: "POST", path: configMaps + "?dryRun=All",
		body: `{"apiVersion":"v1","metadata":{"name":"half"}}`,
	},
	{
		name: "create a kind of another group", method: "POST", path: apps + "deployments",
		body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"half"}}`,
	},
	{
		name: "create another version", method: "POST", path: "/apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers",
		body: `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"half"}}`,
	},
	{
		name: "create a thing of another kind", method: "POST", path: things,
		body: strings.Replace(aThing("half", `{"color":"red","size":1}`), "Thing", "Other", 1),
	},
	{
		name: "create a thing without a version", method: "POST", path: things,
		body: `{"kind":"Thing","metadata":{"name":"half"}}`,
	},
	{
		name: "update the status to another kind", method: "PUT", path: apps + "deployments/web/status",
		body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web"}}`,
	},
	{
		name: "update the scale to another kind", method: "PUT", path: apps + "deployments/web/scale",
		body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web"}}`,
	},
	{name: "list with initial events", method: "GET", path: configMaps + "?sendInitialEvents=true"},
	{name: "list without initial events", method: "GET", path: configMaps + "?sendInitialEvents=false"},
	{name: "list with junk", method: "GET", path: configMaps + "?resourceVersionMatch=junk"},
	{
		name: "list with junk and a version", method: "GET",
		path: configMaps + "?resourceVersionMatch=junk&resourceVersion=1",
	},
	{name: "list exactly", method: "GET", path: configMaps + "?resourceVersionMatch=Exact"},
	{name: "list exactly at 0", method: "GET", path: configMaps + "?resourceVersionMatch=Exact&resourceVersion=0"},
	{
		name: "list the rest exactly", method: "GET",
		path: configMaps + "?limit=1&resourceVersionMatch=Exact&resourceVersion=1&continue=x",
	},
	{name: "watch with initial events", method: "GET", path: watching + "sendInitialEvents=true"},
	{name: "watch without initial events", method: "GET", path: watching + "sendInitialEvents=false"},
	{name: "watch with junk", method: "GET", path: watching + "resourceVersionMatch=junk"},
	{name: "watch with a match", method: "GET", path: watching + "resourceVersionMatch=NotOlderThan"},
	{
		name: "watch exactly", method: "GET",
		path: watching + "sendInitialEvents=true&resourceVersionMatch=Exact",
	},
	{
		name: "watch with continue", method: "GET",
		path: watching + "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
	},
	{name: "no boolean", method: "GET", path: configMaps + "?sendInitialEvents=junk"},
	{name: "things with junk", method: "GET", path: things + "?resourceVersionMatch=junk"},
	{
		name: "junk and an invalid selector", method: "GET",
		path: configMaps + "?resourceVersionMatch=junk&labelSelector=%2C",
	},
	{
		name: "junk and an unknown field", method: "GET",
		path: configMaps + "?resourceVersionMatch=junk&fieldSelector=x%3Dy",
	},
	{name: "still as it was", method: "GET", path: damaged},
}
