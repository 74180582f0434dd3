// Contains the page that rest_service shows to browsers.
#pragma once

#include <string_view>

inline constexpr std::string_view kPage = R"(<!doctype html><title>Notes</title><h1>Notes</h1>
<form><input id=text autofocus><button>Add</button></form><ul id=list></ul><script>
const list = document.getElementById("list"), text = document.getElementById("text");
async function show() {
  const notes = await (await fetch("/notes")).json();
  list.replaceChildren(...notes.map(note => {
    const item = document.createElement("li");
    item.textContent = note.text;
    return item;
  }));
}
document.forms[0].onsubmit = async event => {
  event.preventDefault();
  await fetch("/notes", {method: "POST", body: JSON.stringify({text: text.value})});
  text.value = "";
  show();
};
show();
</script>)";
