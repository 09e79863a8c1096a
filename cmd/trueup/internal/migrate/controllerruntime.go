// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"go/ast"
	"go/token"
	"slices"
)

// movedOptions are fields that the options of a manager had.
var movedOptions = []string{
	"CertDir", "ClientBuilder", "ClientDisableCacheFor", "DryRunClient", "Host", "MetricsBindAddress", "Namespace", "Port",
	"SyncPeriod",
}

// managerOptions reports fields that the options of a manager no longer have.
func (r *rewriter) managerOptions(f *file, lit *ast.CompositeLit) {
	imported, name := f.selector(lit.Type)
	if name != "Options" || imported != controllerRuntime && imported != controllerRuntime+"/pkg/manager" {
		return
	}
	for _, element := range lit.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok && slices.Contains(movedOptions, f.text(kv.Key)) {
			r.leave(f, kv.Pos(), rows["MetricsBindAddress"], f.text(lit.Type)+" has no field "+f.text(kv.Key))
		}
	}
}

// untypedQueue reports queues without a type, which handlers of events no longer get.
func (r *rewriter) untypedQueue(f *file, sel *ast.SelectorExpr) {
	imported, name := f.selector(sel)
	if imported == "k8s.io/client-go/util/workqueue" && name == "RateLimitingInterface" {
		r.leave(f, sel.Pos(), rows["workqueue.RateLimitingInterface"], "handlers of events get a queue with a type")
	}
}

// leave notes what the user has to change.
func (r *rewriter) leave(f *file, pos token.Pos, at row, text string) {
	r.findings = append(r.findings, finding{f, pos, at, text, true})
}
