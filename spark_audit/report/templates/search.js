"use strict";
// Hides the findings that lack a word of the search. It reads the text of the page and changes nothing else.
(function () {
  var box = document.getElementById("search");
  var field = document.getElementById("find");
  var told = document.getElementById("fits");
  var rows = Array.prototype.slice.call(document.querySelectorAll("[data-found]"));
  if (!box || !rows.length) {
    return;
  }
  var texts = rows.map(function (row) { return row.textContent.toLowerCase(); });
  var findings = rows.filter(function (row) { return row.tagName === "TR"; }).length;
  function search() {
    var words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    var fitting = 0;
    rows.forEach(function (row, place) {
      var fits = words.every(function (word) { return texts[place].indexOf(word) >= 0; });
      row.hidden = !fits;
      fitting += fits && row.tagName === "TR" ? 1 : 0;
    });
    told.textContent = words.length ? fitting + " of " + findings + " shown" : "";
  }
  field.addEventListener("input", search);
  box.hidden = false;
  search();
})();
