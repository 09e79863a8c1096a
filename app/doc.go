// SPDX-License-Identifier: Apache-2.0

// Package app defines the interfaces between an app and the code that runs it. An [App] manages kinds, handles
// admission and conversion requests for them, and runs. A [Provider] makes an App for a cluster.
//
// Most apps are made from a config by package simple and run by an operator.Runner. Other apps embed a *simple.App or
// implement App.
package app
