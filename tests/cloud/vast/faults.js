'use strict';
// faults.js - how the stand-in misbehaves. A rule is
//   {"when":{op,id,label,gpu,ask,key,path}, "skip":0, "times":1, "do":{..}}      times -1: always
// op is as in server.js ("createInstance", "listInstances", ...); the texts of `when` are regular expressions over the whole text.
// What `do` may say:
//   status, error, msg, text        answer this (text: as plain text)   after:true   ... once the request has been carried out
//   reset:true                      drop the connection                delay_ms     wait first
//   hang_ms:N                       answer so late what was carried out at once
//   cut:N                           send N bytes of the reply, then drop the connection
//   set:{..}                        put these members into the reply's object (and into each instance of a list)
//   extreme:NAME                    answer so (common/extremes.js)
//   hide:true                       leave the instances out of the list, or answer 404 for one
//   instance:{..}                   an instance created by this request behaves so (see instances.js: quirks)
//   leaves:true                     a refused create leaves a stopped instance, and the refusal names it
//   twin:true                       a create makes two

const { Faults } = require('../common/rules');

module.exports = { Faults };
